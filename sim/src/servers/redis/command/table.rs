//! The table itself, in order of names, and its search.

use super::ServerCommand::*;
use super::{Command, Run, expiry, keys, strings};

const fn reads(
    name: &'static str,
    arity: i32,
    run: fn(&mut super::State, super::Args<'_>) -> super::Reply,
) -> Command {
    Command { name, arity, writes: false, run: Run::Keys(run) }
}

const fn writes(
    name: &'static str,
    arity: i32,
    run: fn(&mut super::State, super::Args<'_>) -> super::Reply,
) -> Command {
    Command { name, arity, writes: true, run: Run::Keys(run) }
}

const fn server(name: &'static str, arity: i32, run: super::ServerCommand) -> Command {
    Command { name, arity, writes: false, run: Run::Server(run) }
}

/// All commands, sorted by name.
pub(crate) static COMMANDS: [Command; 50] = [
    writes("append", 3, strings::append),
    server("client", -2, Client),
    server("command", -1, super::ServerCommand::Command),
    server("config", -2, Config),
    reads("dbsize", 1, keys::dbsize),
    writes("decr", 2, strings::decr),
    writes("decrby", 3, strings::decrby),
    writes("del", -2, keys::del),
    reads("echo", 2, keys::echo),
    server("eval", -3, Eval),
    server("evalsha", -3, EvalSha),
    reads("exists", -2, keys::exists),
    writes("expire", -3, expiry::expire),
    writes("expireat", -3, expiry::expireat),
    reads("expiretime", 2, expiry::expiretime),
    writes("flushall", -1, keys::flush),
    writes("flushdb", -1, keys::flush),
    reads("get", 2, strings::get),
    writes("getdel", 2, strings::getdel),
    writes("getex", -2, strings::getex),
    writes("getset", 3, strings::getset),
    server("hello", -1, Hello),
    writes("incr", 2, strings::incr),
    writes("incrby", 3, strings::incrby),
    server("info", -1, Info),
    reads("keys", 2, keys::keys),
    reads("mget", -2, strings::mget),
    writes("mset", -3, strings::mset),
    writes("msetnx", -3, strings::msetnx),
    writes("persist", 2, expiry::persist),
    writes("pexpire", -3, expiry::pexpire),
    writes("pexpireat", -3, expiry::pexpireat),
    reads("pexpiretime", 2, expiry::pexpiretime),
    reads("ping", -1, keys::ping),
    writes("psetex", 4, strings::psetex),
    reads("pttl", 2, expiry::pttl),
    server("quit", -1, Quit),
    server("reset", 1, Reset),
    reads("scan", -2, keys::scan),
    server("script", -2, Script),
    reads("select", 2, keys::select),
    writes("set", -3, strings::set),
    writes("setex", 4, strings::setex),
    writes("setnx", 3, strings::setnx),
    reads("strlen", 2, strings::strlen),
    reads("time", 1, keys::time),
    reads("touch", -2, keys::exists),
    reads("ttl", 2, expiry::ttl),
    reads("type", 2, keys::kind),
    writes("unlink", -2, keys::del),
];

/// The longest name in the table.
const NAME_BYTES_MAX: usize = 12;

/// The command called `name`, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let at = COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(lower)).ok()?;
    Some(&COMMANDS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        for command in &COMMANDS {
            assert_eq!(find(command.name.as_bytes()).map(|found| found.name), Some(command.name));
            assert_eq!(
                find(command.name.to_uppercase().as_bytes()).map(|found| found.name),
                Some(command.name)
            );
        }
        assert!(find(b"nope").is_none());
        assert!(find(b"a name longer than any command").is_none());
    }
}
