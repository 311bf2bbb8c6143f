//! The commands that the simulated Redis knows, as templates: a word in `<>` is replaced by one of several
//! values, which `command.rs` lists.

use super::collections;
use super::near::Closeness;

/// Templates that are drawn with equal probability.
#[derive(Debug)]
pub(crate) struct Group {
    /// How often the group is drawn, relative to the others.
    pub(crate) weight: u32,
    /// True if words may be cut, added and replaced by junk.
    pub(crate) may_be_mangled: bool,
    pub(crate) templates: &'static [&'static str],
}

/// Commands on keys. Random Lua scripts call these, too.
pub(crate) const KEYS: Group = Group {
    weight: 14,
    may_be_mangled: true,
    templates: &[
        "GET <key>",
        "SET <key> <value>",
        "SET <key> <value> NX",
        "SET <key> <value> XX",
        "SET <key> <value> NX PX <millis>",
        "SET <key> <value> EX <seconds>",
        "SET <key> <value> PX <millis> GET",
        "SET <key> <value> NX GET",
        "SET <key> <value> XX GET",
        "SET <key> <value> KEEPTTL",
        "SET <key> <value> PXAT <unix-millis>",
        "SET <key> <value> EXAT <unix-seconds>",
        "SET <key> <value> PX <millis> KEEPTTL",
        "SET <key> <value> EX <seconds> PX <millis>",
        "SET <key> <value> NX XX",
        "SETNX <key> <value>",
        "SETEX <key> <seconds> <value>",
        "PSETEX <key> <millis> <value>",
        "GETSET <key> <value>",
        "GETDEL <key>",
        "GETEX <key>",
        "GETEX <key> PX <millis>",
        "GETEX <key> EX <seconds>",
        "GETEX <key> PERSIST",
        "GETEX <key> PXAT <unix-millis>",
        "GETEX <key> EXAT <unix-seconds>",
        "GETEX <key> PERSIST PX <millis>",
        "APPEND <key> <value>",
        "STRLEN <key>",
        "MGET <key> <key>",
        "MSET <key> <value> <key> <value>",
        "MSETNX <key> <value> <key> <value>",
        "INCR <key>",
        "DECR <key>",
        "INCRBY <key> <number>",
        "DECRBY <key> <number>",
        "DEL <key>",
        "DEL <key> <key>",
        "UNLINK <key>",
        "EXISTS <key> <key>",
        "TOUCH <key> <key>",
        "TYPE <key>",
        "EXPIRE <key> <seconds>",
        "EXPIRE <key> -1",
        "EXPIRE <key> <seconds> NX",
        "EXPIRE <key> <seconds> XX",
        "PEXPIRE <key> <millis>",
        "PEXPIRE <key> <millis> NX",
        "EXPIREAT <key> <unix-seconds>",
        "EXPIREAT <key> <unix-seconds> GT",
        "PEXPIREAT <key> <unix-millis>",
        "PEXPIREAT <key> <unix-millis> GT",
        "PEXPIREAT <key> <unix-millis> LT",
        "PEXPIREAT <key> <unix-millis> XX LT",
        "PEXPIREAT <key> <unix-millis> NX LT",
        "PEXPIREAT <key> <unix-millis> GT LT",
        "TTL <key>",
        "PTTL <key>",
        "EXPIRETIME <key>",
        "PEXPIRETIME <key>",
        "PERSIST <key>",
        "ECHO <value>",
        "PING",
        "PING <value>",
    ],
};

/// The commands of Valkey 9 by which leases are renewed and released, and those that show what they did.
pub(crate) const VALKEY: Group = Group {
    weight: 1,
    may_be_mangled: true,
    templates: &[
        "DELIFEQ <key> <value>",
        "DELIFEQ <key> v",
        "SET <key> <value> IFEQ <value>",
        "SET <key> <value> IFEQ v",
        "SET <key> v IFEQ v PX <millis>",
        "SET <key> <value> IFEQ <value> PX <millis>",
        "SET <key> v IFEQ <value> GET",
        "SET <key> <value> IFEQ <value> KEEPTTL",
        "SET <key> <value> IFEQ <value> NX",
        "SET <key> <value> XX IFEQ <value>",
        "SET <key> <value> PXAT <unix-millis> IFEQ v",
        "SET <key> v",
        "SET <key> v PX <millis>",
        "SET <key> <value>",
        "GET <key>",
        "PTTL <key>",
        "EXISTS <key> <key>",
    ],
};

/// Commands on all keys, the connection, or the server.
pub(crate) const SERVER: Group = Group {
    weight: 3,
    may_be_mangled: true,
    templates: &[
        "DBSIZE",
        "KEYS <pattern>",
        "SCAN 0",
        "SCAN 0 MATCH <pattern>",
        "SCAN 0 COUNT 100 TYPE string",
        "FLUSHALL",
        "FLUSHALL ASYNC",
        "FLUSHDB SYNC",
        "SELECT 0",
        "TIME",
        "CLIENT GETNAME",
        "CLIENT SETNAME worker",
        "CLIENT ID",
        "CLIENT INFO",
        "CLIENT LIST",
        "CLIENT NO-EVICT ON",
        "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
        "SCRIPT FLUSH",
        "SCRIPT FLUSH ASYNC",
        "SCRIPT KILL",
        "ROLE",
        "NOSUCH <key> <value>",
    ],
};

/// Commands that must not be mangled: they could block for ever, or change settings for later scripts.
pub(crate) const SAFE: Group = Group {
    weight: 3,
    may_be_mangled: false,
    templates: &[
        "WAIT 0 0",
        "WAIT 0 10",
        "WAIT 1 10",
        "WAIT -1 10",
        "WAIT x 10",
        "WAIT 1 -1",
        "WAIT 1 x",
        "WAIT 1",
        "CONFIG GET appendonly",
        "CONFIG GET maxmemory save",
        "CONFIG GET nosuch",
        "CONFIG GET notify-keyspace-events",
        "CONFIG SET notify-keyspace-events KEy",
        "CONFIG SET notify-keyspace-events",
        "CONFIG SET notify-keyspace-events K nosuch 1",
        "CONFIG SET notify-keyspace-events K notify-keyspace-events E",
        "CONFIG SET nosuch 1 2",
        "CONFIG GET",
        "CONFIG RESETSTAT",
        "CONFIG SET nosuch 1",
        "CONFIG NOSUCH",
        "COMMAND",
        "COMMAND COUNT",
        "COMMAND DOCS",
        "COMMAND DOCS nosuch",
        "COMMAND NOSUCH",
        "INFO",
        "INFO replication",
        "HELLO",
        "HELLO 2",
        "HELLO 3",
        "HELLO 4",
        "HELLO x",
        "HELLO 3 SETNAME worker",
        "HELLO 3 NOSUCH",
        "RESET",
        "QUIT",
        "PUBLISH <key> <value>",
        "REPLICAOF NO ONE",
        "SLAVEOF no one",
    ],
};

/// The protocols, for scripts on collections.
pub(crate) const PROTOCOLS: Group =
    Group { weight: 1, may_be_mangled: false, templates: &["HELLO 3", "HELLO 3", "HELLO 2"] };

/// Transactions.
pub(crate) const TRANSACTIONS: Group = Group {
    weight: 7,
    may_be_mangled: false,
    templates: &[
        "MULTI",
        "MULTI",
        "EXEC",
        "EXEC",
        "DISCARD",
        "WATCH <key>",
        "WATCH <key> <key>",
        "UNWATCH",
        "EXEC now",
        "WATCH",
    ],
};

/// Commands of subscribers and publishers, for scripts of their own.
pub(crate) const CHANNELS: Group = Group {
    weight: 1,
    may_be_mangled: true,
    templates: &[
        "SUBSCRIBE <key>",
        "SUBSCRIBE <key> <key>",
        "UNSUBSCRIBE",
        "UNSUBSCRIBE <key>",
        "UNSUBSCRIBE <key> <key>",
        "PSUBSCRIBE <pattern>",
        "PSUBSCRIBE <pattern> <pattern>",
        "PUNSUBSCRIBE",
        "PUNSUBSCRIBE <pattern>",
        "PUNSUBSCRIBE <pattern> <pattern>",
        "PUBSUB CHANNELS",
        "PUBSUB CHANNELS <pattern>",
        "PUBSUB NUMSUB <key> <key>",
        "PUBSUB NUMPAT",
        "PUBSUB SHARDCHANNELS",
        "PUBSUB SHARDNUMSUB <key>",
        "PUBSUB HELP",
        "PUBSUB NOSUCH",
        "PUBLISH <key> <value>",
        "PUBLISH <key> <value>",
        "PUBLISH <key> <value>",
        "PUBLISH <key> <value>",
        "PUBLISH <key> <value>",
    ],
};

/// The kinds that never succeed.
const FAILING: [&str; 7] = [
    "NOSUCH",
    "SCRIPT KILL",
    "CONFIG SET",
    "CONFIG NOSUCH",
    "COMMAND NOSUCH",
    "OBJECT FREQ",
    "OBJECT NOSUCH",
];
const CONTAINERS: [&str; 6] = ["CLIENT", "COMMAND", "CONFIG", "OBJECT", "PUBSUB", "SCRIPT"];

/// Returns the kind of operation of a template: its name, with the subcommand if there is one.
pub(crate) fn kind(template: &str) -> String {
    let mut words = template.split(' ');
    let name = words.next().unwrap_or_default();
    match words.next() {
        Some(action) if CONTAINERS.contains(&name) => format!("{name} {action}"),
        _ => name.to_owned(),
    }
}

/// Requests as bytes, valid and invalid. Each gets one reply.
pub(crate) const WIRE: &[&str] = &[
    "PING\r\n",
    "\r\nPING\r\n",
    "  SET  a \"x\\x41\\n\"  \r\n",
    "SET a 'it\\'s'\n",
    "GET \"a\r\n",
    "GET \"a\"b\r\n",
    "GET a b\r\n",
    "*1\r\n$4\r\nPING\r\n",
    "*0\r\nPING\r\n",
    "*-1\r\nPING\r\n",
    "*x\r\n",
    "*2147483648\r\n",
    "*1\r\n+3\r\n",
    "*1\r\n\r\n",
    "*1\r\n$x\r\n",
    "*1\r\n$-1\r\n",
    "*2\r\n$3\r\nGET\r\n$600000000\r\n",
];

/// The commands that a replica sends to its primary.
pub(crate) const NOT_COMPARED: [&str; 2] = ["PSYNC", "REPLCONF"];

/// Returns the names of all commands in templates, except the one that no server knows.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let templates = all().chain(CHANNELS.templates.iter().copied());
    templates.filter_map(|template| template.split(' ').next()).filter(|name| *name != "NOSUCH")
}

/// Returns the kinds that must have succeeded in a run.
pub(crate) fn kinds() -> impl Iterator<Item = String> {
    all().map(kind).filter(|kind| !FAILING.contains(&kind.as_str()))
}

fn all() -> impl Iterator<Item = &'static str> {
    let groups = [&KEYS, &SERVER, &SAFE, &TRANSACTIONS].into_iter().chain(collections::ALL);
    groups.flat_map(|group| group.templates.iter().copied())
}

/// Returns how closely the replies to a command must agree. `may_have_expired`: some key may have expired;
/// `may_have_table`: some hash may have lost its order.
pub(crate) fn closeness(words: &[Vec<u8>], may_have_expired: bool, may_have_table: bool) -> Closeness {
    match String::from_utf8_lossy(&words[0]).to_uppercase().as_str() {
        "TTL" | "PTTL" | "EXPIRETIME" | "PEXPIRETIME" => Closeness::Millis,
        "HTTL" | "HPTTL" | "HEXPIRETIME" | "HPEXPIRETIME" => Closeness::Millis,
        // The simulated server returns all keys at the first call; Redis chooses its cursors itself.
        "SCAN" if words.get(1).is_some_and(|cursor| cursor != b"0") => Closeness::Kind,
        "HSCAN" | "SSCAN" | "ZSCAN" if words.get(2).is_some_and(|cursor| cursor != b"0") => Closeness::Kind,
        "KEYS" | "SCAN" | "CONFIG" => Closeness::Unordered,
        "HELLO" => Closeness::AnyInteger,
        "TIME" | "INFO" | "CLIENT" | "COMMAND" => Closeness::Kind,
        "OBJECT" if words.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"idletime")) => {
            Closeness::Kind
        }
        // Sets have no order but for those of integers.
        "SMEMBERS" | "SUNION" | "SINTER" | "SDIFF" | "SSCAN" | "SPOP" => Closeness::Unordered,
        // The live server returns only a part of a large one.
        "HSCAN" if may_have_table => Closeness::Kind,
        "HGETALL" | "HKEYS" | "HVALS" if may_have_table => Closeness::Unordered,
        "RANDOMKEY" => Closeness::Kind,
        "SRANDMEMBER" | "HRANDFIELD" | "ZRANDMEMBER" => match words {
            [_, key, ..] if key == b"one" => Closeness::Exact,
            [_, _, count, ..] if count == b"100" => Closeness::Unordered,
            _ => Closeness::Kind,
        },
        // Redis counts an expired key until it removes it.
        "DBSIZE" if may_have_expired => Closeness::Kind,
        _ => Closeness::Exact,
    }
}
