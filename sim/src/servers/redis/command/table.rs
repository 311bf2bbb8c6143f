//! The table itself, in order of names, and its search.

use super::{Args, Command, Reply, Run, ServerCommand, State, Version, expiry, keys, strings};
use crate::servers::redis::word::Word;

/// Creates a command on keys.
const fn keys_command(
    name: &'static str,
    arity: i32,
    writes: bool,
    run: fn(&mut State, Args<'_>) -> Reply,
) -> Command {
    Command { name, arity, subcommands: &[], writes, only: None, run: Run::Keys(run) }
}

const fn reads(name: &'static str, arity: i32, run: fn(&mut State, Args<'_>) -> Reply) -> Command {
    keys_command(name, arity, false, run)
}

const fn writes(name: &'static str, arity: i32, run: fn(&mut State, Args<'_>) -> Reply) -> Command {
    keys_command(name, arity, true, run)
}

/// Creates a writing command that one version has.
const fn writes_in(
    version: Version,
    name: &'static str,
    arity: i32,
    run: fn(&mut State, Args<'_>) -> Reply,
) -> Command {
    Command { only: Some(version), ..writes(name, arity, run) }
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
    Command { name, arity, subcommands, writes: false, only: None, run: Run::Server(run) }
}

const CLIENT: &[(&str, i32)] =
    &[("getname", 2), ("id", 2), ("info", 2), ("list", -2), ("no-evict", 3), ("setname", 3)];
const COMMAND: &[(&str, i32)] = &[("count", 2), ("docs", -2), ("info", -2), ("list", -2)];
const CONFIG: &[(&str, i32)] = &[("get", -3), ("resetstat", 2), ("set", -4)];
const SCRIPT: &[(&str, i32)] = &[("exists", -3), ("flush", -2), ("kill", 2), ("load", 3)];

/// All commands, sorted by name.
static COMMANDS: [Command; 66] = [
    writes("append", 3, strings::append),
    container("client", -2, ServerCommand::Client, CLIENT),
    container("command", -1, ServerCommand::Command, COMMAND),
    container("config", -2, ServerCommand::Config, CONFIG),
    reads("dbsize", 1, keys::dbsize),
    writes("decr", 2, strings::decr),
    writes("decrby", 3, strings::decrby),
    writes("del", -2, keys::del),
    writes_in(Version::Redis84, "delex", -2, strings::delex),
    writes_in(Version::Valkey9, "delifeq", 3, strings::delifeq),
    server("discard", 1, ServerCommand::Discard),
    reads("echo", 2, keys::echo),
    server("eval", -3, ServerCommand::Eval),
    server("evalsha", -3, ServerCommand::EvalSha),
    server("exec", 1, ServerCommand::Exec),
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
    server("hello", -1, ServerCommand::Hello),
    writes("incr", 2, strings::incr),
    writes("incrby", 3, strings::incrby),
    server("info", -1, ServerCommand::Info),
    reads("keys", 2, keys::keys),
    reads("mget", -2, strings::mget),
    writes("mset", -3, strings::mset),
    writes("msetnx", -3, strings::msetnx),
    server("multi", 1, ServerCommand::Multi),
    writes("persist", 2, expiry::persist),
    writes("pexpire", -3, expiry::pexpire),
    writes("pexpireat", -3, expiry::pexpireat),
    reads("pexpiretime", 2, expiry::pexpiretime),
    reads("ping", -1, keys::ping),
    writes("psetex", 4, strings::psetex),
    server("psync", -3, ServerCommand::Psync),
    reads("pttl", 2, expiry::pttl),
    reads("publish", 3, keys::publish),
    server("quit", -1, ServerCommand::Quit),
    server("replconf", -1, ServerCommand::ReplConf),
    server("replicaof", 3, ServerCommand::ReplicaOf),
    server("reset", 1, ServerCommand::Reset),
    server("role", 1, ServerCommand::Role),
    reads("scan", -2, keys::scan),
    container("script", -2, ServerCommand::Script, SCRIPT),
    reads("select", 2, keys::select),
    writes("set", -3, strings::set),
    writes("setex", 4, strings::setex),
    writes("setnx", 3, strings::setnx),
    server("slaveof", 3, ServerCommand::ReplicaOf),
    reads("strlen", 2, strings::strlen),
    server("subscribe", -2, ServerCommand::Subscribe),
    reads("time", 1, keys::time),
    reads("touch", -2, keys::exists),
    reads("ttl", 2, expiry::ttl),
    reads("type", 2, keys::kind),
    writes("unlink", -2, keys::del),
    server("unsubscribe", -1, ServerCommand::Unsubscribe),
    server("unwatch", 1, ServerCommand::Unwatch),
    server("wait", 3, ServerCommand::Wait),
    server("watch", -2, ServerCommand::Watch),
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
        self.only.is_none_or(|only| only == version)
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
static PLACES: [u8; 256] = {
    let mut places = [NOBODY; 256];
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
            let version = command.only.unwrap_or_default();
            let found = |name: &str| find(name.as_bytes(), version).map(|found| found.name);
            assert_eq!(found(command.name), Some(command.name));
            assert_eq!(found(&command.name.to_uppercase()), Some(command.name));
        }
        assert!(find(b"nope", Version::Redis7).is_none());
        assert!(find(b"a name longer than any command", Version::Redis7).is_none());
    }

    #[test]
    fn a_version_has_its_own_commands_only() {
        for (version, own) in [(Version::Redis84, "delex"), (Version::Valkey9, "delifeq")] {
            assert_eq!(count(version), count(Version::Redis7) + 1);
            for other in [Version::Redis7, Version::Redis84, Version::Valkey9] {
                assert_eq!(find(own.as_bytes(), other).is_some(), other == version, "{own} in {other:?}");
            }
        }
    }
}
