//! The table itself, in order of names, and its search.

use super::{
    Args, Command, Reply, Run, ServerCommand, State, Version, databases, expiry, fields, hashes, keys, lists,
    object, pubsub, renames, scan, set_operations, sets, sorted_sets, strings,
};
use crate::servers::redis::word::Word;

const ALL: &[Version] = &[Version::Redis7, Version::Redis84, Version::Valkey9];
const NEWER: &[Version] = &[Version::Redis84, Version::Valkey9];

/// Creates a command on keys.
const fn keys_command(
    name: &'static str,
    arity: i32,
    writes: bool,
    run: fn(&mut State, Args<'_>) -> Result<Reply, Reply>,
) -> Command {
    Command { name, arity, subcommands: &[], writes, versions: ALL, run: Run::Keys(run) }
}

const fn reads(
    name: &'static str,
    arity: i32,
    run: fn(&mut State, Args<'_>) -> Result<Reply, Reply>,
) -> Command {
    keys_command(name, arity, false, run)
}

const fn writes(
    name: &'static str,
    arity: i32,
    run: fn(&mut State, Args<'_>) -> Result<Reply, Reply>,
) -> Command {
    keys_command(name, arity, true, run)
}

/// Returns `command` as one that only these versions have.
const fn only_in(versions: &'static [Version], command: Command) -> Command {
    Command { versions, ..command }
}

/// Creates a writing command that may wait, and that scripts may not call.
const fn waits(
    name: &'static str,
    arity: i32,
    run: fn(&mut State, Args<'_>) -> Result<Reply, Reply>,
) -> Command {
    Command { run: Run::Clients(run), ..writes(name, arity, run) }
}

const fn server(name: &'static str, arity: i32, run: ServerCommand) -> Command {
    container(name, arity, run, &[])
}

/// Creates a command whose second word is a subcommand.
const fn container(
    name: &'static str,
    arity: i32,
    run: ServerCommand,
    subcommands: &'static [(&'static str, i32)],
) -> Command {
    Command { name, arity, subcommands, writes: false, versions: ALL, run: Run::Server(run) }
}

const CLIENT: &[(&str, i32)] =
    &[("getname", 2), ("id", 2), ("info", 2), ("list", -2), ("no-evict", 3), ("setname", 3)];
const COMMAND: &[(&str, i32)] = &[("count", 2), ("docs", -2), ("info", -2), ("list", -2)];
const CONFIG: &[(&str, i32)] = &[("get", -3), ("resetstat", 2), ("set", -4)];
const OBJECT: &[(&str, i32)] = &[("encoding", 3), ("freq", 3), ("help", 2), ("idletime", 3), ("refcount", 3)];
const PUBSUB: &[(&str, i32)] = &[
    ("channels", -2),
    ("help", 2),
    ("numpat", 2),
    ("numsub", -2),
    ("shardchannels", -2),
    ("shardnumsub", -2),
];
const SCRIPT: &[(&str, i32)] = &[("exists", -3), ("flush", -2), ("kill", 2), ("load", 3)];

/// All commands, sorted by name.
static COMMANDS: [Command; 186] = [
    writes("append", 3, strings::append),
    waits("blmove", 6, lists::blmove),
    writes("blmpop", -5, lists::blmpop),
    waits("blpop", -3, lists::blpop),
    waits("brpop", -3, lists::brpop),
    waits("brpoplpush", 4, lists::brpoplpush),
    writes("bzmpop", -5, sorted_sets::bzmpop),
    waits("bzpopmax", -3, sorted_sets::bzpopmax),
    waits("bzpopmin", -3, sorted_sets::bzpopmin),
    container("client", -2, ServerCommand::Client, CLIENT),
    container("command", -1, ServerCommand::Command, COMMAND),
    container("config", -2, ServerCommand::Config, CONFIG),
    writes("copy", -3, databases::copy),
    reads("dbsize", 1, keys::dbsize),
    writes("decr", 2, strings::decr),
    writes("decrby", 3, strings::decrby),
    writes("del", -2, keys::del),
    only_in(&[Version::Redis84], writes("delex", -2, strings::delex)),
    only_in(&[Version::Valkey9], writes("delifeq", 3, strings::delifeq)),
    only_in(&[Version::Redis84], reads("digest", 2, strings::digest)),
    server("discard", 1, ServerCommand::Discard),
    reads("echo", 2, keys::echo),
    server("eval", -3, ServerCommand::Eval),
    server("evalsha", -3, ServerCommand::EvalSha),
    server("exec", 1, ServerCommand::Exec),
    reads("exists", -2, keys::exists),
    writes("expire", -3, expiry::expire),
    writes("expireat", -3, expiry::expireat),
    reads("expiretime", 2, expiry::expiretime),
    writes("flushall", -1, keys::flushall),
    writes("flushdb", -1, keys::flushdb),
    reads("get", 2, strings::get),
    writes("getdel", 2, strings::getdel),
    writes("getex", -2, strings::getex),
    reads("getrange", 4, strings::getrange),
    writes("getset", 3, strings::getset),
    writes("hdel", -3, hashes::hdel),
    server("hello", -1, ServerCommand::Hello),
    reads("hexists", 3, hashes::hexists),
    only_in(NEWER, writes("hexpire", -6, fields::hexpire)),
    only_in(NEWER, writes("hexpireat", -6, fields::hexpireat)),
    only_in(NEWER, reads("hexpiretime", -5, fields::hexpiretime)),
    reads("hget", 3, hashes::hget),
    reads("hgetall", 2, hashes::hgetall),
    only_in(NEWER, writes("hgetdel", -5, fields::hgetdel)),
    only_in(NEWER, writes("hgetex", -5, fields::hgetex)),
    writes("hincrby", 4, hashes::hincrby),
    writes("hincrbyfloat", 4, hashes::hincrbyfloat),
    reads("hkeys", 2, hashes::hkeys),
    reads("hlen", 2, hashes::hlen),
    reads("hmget", -3, hashes::hmget),
    writes("hmset", -4, hashes::hmset),
    only_in(NEWER, writes("hpersist", -5, fields::hpersist)),
    only_in(NEWER, writes("hpexpire", -6, fields::hpexpire)),
    only_in(NEWER, writes("hpexpireat", -6, fields::hpexpireat)),
    only_in(NEWER, reads("hpexpiretime", -5, fields::hpexpiretime)),
    only_in(NEWER, reads("hpttl", -5, fields::hpttl)),
    reads("hrandfield", -2, hashes::hrandfield),
    reads("hscan", -3, scan::hscan),
    writes("hset", -4, hashes::hset),
    only_in(NEWER, writes("hsetex", -6, fields::hsetex)),
    writes("hsetnx", 4, hashes::hsetnx),
    reads("hstrlen", 3, hashes::hstrlen),
    only_in(NEWER, reads("httl", -5, fields::httl)),
    reads("hvals", 2, hashes::hvals),
    writes("incr", 2, strings::incr),
    writes("incrby", 3, strings::incrby),
    writes("incrbyfloat", 3, strings::incrbyfloat),
    server("info", -1, ServerCommand::Info),
    reads("keys", 2, keys::keys),
    reads("lcs", -3, strings::lcs),
    reads("lindex", 3, lists::lindex),
    writes("linsert", 5, lists::linsert),
    reads("llen", 2, lists::llen),
    writes("lmove", 5, lists::lmove),
    writes("lmpop", -4, lists::lmpop),
    writes("lpop", -2, lists::lpop),
    reads("lpos", -3, lists::lpos),
    writes("lpush", -3, lists::lpush),
    writes("lpushx", -3, lists::lpushx),
    reads("lrange", 4, lists::lrange),
    writes("lrem", 4, lists::lrem),
    writes("lset", 4, lists::lset),
    writes("ltrim", 4, lists::ltrim),
    reads("mget", -2, strings::mget),
    server("monitor", 1, ServerCommand::Monitor),
    writes("move", 3, databases::r#move),
    writes("mset", -3, strings::mset),
    only_in(NEWER, writes("msetex", -4, strings::msetex)),
    writes("msetnx", -3, strings::msetnx),
    server("multi", 1, ServerCommand::Multi),
    Command { subcommands: OBJECT, ..reads("object", -2, object::object) },
    writes("persist", 2, expiry::persist),
    writes("pexpire", -3, expiry::pexpire),
    writes("pexpireat", -3, expiry::pexpireat),
    reads("pexpiretime", 2, expiry::pexpiretime),
    reads("ping", -1, keys::ping),
    writes("psetex", 4, strings::psetex),
    server("psubscribe", -2, ServerCommand::PSubscribe),
    server("psync", -3, ServerCommand::Psync),
    reads("pttl", 2, expiry::pttl),
    reads("publish", 3, pubsub::publish),
    Command { subcommands: PUBSUB, ..reads("pubsub", -2, pubsub::pubsub) },
    server("punsubscribe", -1, ServerCommand::PUnsubscribe),
    server("quit", -1, ServerCommand::Quit),
    reads("randomkey", 1, keys::randomkey),
    writes("rename", 3, renames::rename),
    writes("renamenx", 3, renames::renamenx),
    server("replconf", -1, ServerCommand::ReplConf),
    server("replicaof", 3, ServerCommand::ReplicaOf),
    server("reset", 1, ServerCommand::Reset),
    server("role", 1, ServerCommand::Role),
    writes("rpop", -2, lists::rpop),
    writes("rpoplpush", 3, lists::rpoplpush),
    writes("rpush", -3, lists::rpush),
    writes("rpushx", -3, lists::rpushx),
    writes("sadd", -3, sets::sadd),
    reads("scan", -2, keys::scan),
    reads("scard", 2, sets::scard),
    container("script", -2, ServerCommand::Script, SCRIPT),
    reads("sdiff", -2, set_operations::sdiff),
    writes("sdiffstore", -3, set_operations::sdiffstore),
    reads("select", 2, keys::select),
    writes("set", -3, strings::set),
    writes("setex", 4, strings::setex),
    writes("setnx", 3, strings::setnx),
    writes("setrange", 4, strings::setrange),
    reads("sinter", -2, set_operations::sinter),
    reads("sintercard", -3, set_operations::sintercard),
    writes("sinterstore", -3, set_operations::sinterstore),
    reads("sismember", 3, sets::sismember),
    server("slaveof", 3, ServerCommand::ReplicaOf),
    reads("smembers", 2, sets::smembers),
    reads("smismember", -3, sets::smismember),
    writes("smove", 4, sets::smove),
    writes("spop", -2, sets::spop),
    reads("srandmember", -2, sets::srandmember),
    writes("srem", -3, sets::srem),
    reads("sscan", -3, scan::sscan),
    reads("strlen", 2, strings::strlen),
    server("subscribe", -2, ServerCommand::Subscribe),
    reads("substr", 4, strings::getrange),
    reads("sunion", -2, set_operations::sunion),
    writes("sunionstore", -3, set_operations::sunionstore),
    writes("swapdb", 3, databases::swapdb),
    reads("time", 1, keys::time),
    reads("touch", -2, keys::touch),
    reads("ttl", 2, expiry::ttl),
    reads("type", 2, keys::kind),
    writes("unlink", -2, keys::del),
    server("unsubscribe", -1, ServerCommand::Unsubscribe),
    server("unwatch", 1, ServerCommand::Unwatch),
    server("wait", 3, ServerCommand::Wait),
    server("watch", -2, ServerCommand::Watch),
    writes("zadd", -4, sorted_sets::zadd),
    reads("zcard", 2, sorted_sets::zcard),
    reads("zcount", 4, sorted_sets::zcount),
    reads("zdiff", -3, sorted_sets::zdiff),
    writes("zdiffstore", -4, sorted_sets::zdiffstore),
    writes("zincrby", 4, sorted_sets::zincrby),
    reads("zinter", -3, sorted_sets::zinter),
    reads("zintercard", -3, sorted_sets::zintercard),
    writes("zinterstore", -4, sorted_sets::zinterstore),
    reads("zlexcount", 4, sorted_sets::zlexcount),
    writes("zmpop", -4, sorted_sets::zmpop),
    reads("zmscore", -3, sorted_sets::zmscore),
    writes("zpopmax", -2, sorted_sets::zpopmax),
    writes("zpopmin", -2, sorted_sets::zpopmin),
    reads("zrandmember", -2, sorted_sets::zrandmember),
    reads("zrange", -4, sorted_sets::zrange),
    reads("zrangebylex", -4, sorted_sets::zrangebylex),
    reads("zrangebyscore", -4, sorted_sets::zrangebyscore),
    writes("zrangestore", -5, sorted_sets::zrangestore),
    reads("zrank", 3, sorted_sets::zrank),
    writes("zrem", -3, sorted_sets::zrem),
    writes("zremrangebylex", 4, sorted_sets::zremrangebylex),
    writes("zremrangebyrank", 4, sorted_sets::zremrangebyrank),
    writes("zremrangebyscore", 4, sorted_sets::zremrangebyscore),
    reads("zrevrange", -4, sorted_sets::zrevrange),
    reads("zrevrangebylex", -4, sorted_sets::zrevrangebylex),
    reads("zrevrangebyscore", -4, sorted_sets::zrevrangebyscore),
    reads("zrevrank", 3, sorted_sets::zrevrank),
    reads("zscan", -3, scan::zscan),
    reads("zscore", 3, sorted_sets::zscore),
    reads("zunion", -3, sorted_sets::zunion),
    writes("zunionstore", -4, sorted_sets::zunionstore),
];

/// The names of [`COMMANDS`], next to each other in memory for the search.
static NAMES: [Word; COMMANDS.len()] = {
    let mut names = [Word::new(""); COMMANDS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = Word::new(COMMANDS[at].name);
        at += 1;
    }
    names
};

/// Returns the number of commands that `version` has.
pub(crate) fn count(version: Version) -> usize {
    COMMANDS.iter().filter(|command| command.is_in(version)).count()
}

impl Command {
    fn is_in(&self, version: Version) -> bool {
        self.versions.contains(&version)
    }
}

/// Returns the command of `version` called `name`, in any case.
pub(super) fn find(name: &[u8], version: Version) -> Option<&'static Command> {
    let word = Word::of(name);
    let mut place = word.place();
    while PLACES[place] != NOBODY {
        let at = usize::from(PLACES[place]);
        if NAMES[at] == word {
            return Some(&COMMANDS[at]).filter(|command| command.is_in(version));
        }
        place = (place + 1) % PLACES.len();
    }
    None
}

/// Marks a free place.
const NOBODY: u8 = u8::MAX;

/// A hash table with linear probing: each command is at the place of its name, or at the next free one.
static PLACES: [u8; 1024] = {
    let mut places = [NOBODY; 1024];
    let mut at = 0;
    while at < COMMANDS.len() {
        let mut place = NAMES[at].place();
        while places[place] != NOBODY {
            place = (place + 1) % places.len();
        }
        // There are fewer commands than places.
        places[place] = at as u8;
        at += 1;
    }
    places
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        for command in &COMMANDS {
            let version = command.versions[0];
            let found = |name: &str| find(name.as_bytes(), version).map(|found| found.name);
            assert_eq!(found(command.name), Some(command.name));
            assert_eq!(found(&command.name.to_uppercase()), Some(command.name));
        }
        assert!(find(b"nope", Version::Redis7).is_none());
        assert!(find(b"a name longer than any command", Version::Redis7).is_none());
    }

    #[test]
    fn a_version_has_its_own_commands_only() {
        use Version::{Redis7, Redis84, Valkey9};
        for (versions, own) in [
            (&[Redis84][..], &["delex", "digest"][..]),
            (&[Valkey9], &["delifeq"]),
            (&[Redis84, Valkey9], &["hexpire", "hgetdel", "hgetex", "hpersist", "hsetex", "httl", "msetex"]),
        ] {
            for version in [Redis7, Redis84, Valkey9] {
                let is_found = |name: &&str| find(name.as_bytes(), version).is_some();
                let is_expected = versions.contains(&version);
                assert!(own.iter().all(|name| is_found(name) == is_expected), "{own:?} in {version:?}");
            }
        }
        assert_eq!((count(Redis7), count(Redis84), count(Valkey9)), (170, 185, 184));
    }
}
