# Waits until its creator is gone, then kills what runs in the directory $1 and removes it.
#
# Each process of the directory leads a process group and has a file pids/PID with the signal that ends it.
# Its working directory lies in $1: a pid that by now is another's is left alone.
read -r word
[ "$word" = leave ] && exit 0

living() {
  for file in "$1"/pids/*; do
    pid=${file##*/}
    case $(readlink "/proc/$pid/cwd" 2>/dev/null) in
      "$1" | "$1"/*) echo "$pid" ;;
    esac
  done
}

for pid in $(living "$1"); do
  read -r signal <"$1/pids/$pid"
  kill "-${signal:-KILL}" "-$pid"
  kill -CONT "-$pid"
done
# A database that is told to quit needs a moment to give back its shared memory.
tries=0
while [ -n "$(living "$1")" ] && [ "$tries" -lt 60 ]; do
  sleep 0.05
  tries=$((tries + 1))
done
for pid in $(living "$1"); do kill -KILL "-$pid"; done
# Network namespaces, with their links and rules.
if [ -f "$1/namespaces" ]; then
  PATH=$PATH:/usr/sbin:/sbin
  while read -r name; do ip netns del "$name"; done <"$1/namespaces"
fi
tries=0
while ! rm -rf "$1" && [ "$tries" -lt 40 ]; do
  sleep 0.05
  tries=$((tries + 1))
done
