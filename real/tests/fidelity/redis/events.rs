//! Scripts of commands of one client, while another gets the events of all keys. After each command, the
//! messages are compared, in order. A key that expires is no part of these scripts: the live server removes
//! it at a time of its own.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::prop_oneof;
use proptest::sample::select;
use proptest::strategy::{BoxedStrategy, Strategy, Union};

use super::command::{self, Command, Word};
use super::script::Servers;
use super::templates::Group;
use super::wire::{self, Connection, Reply};
use super::{collections, fields, lua, templates};
use crate::harness::{Tally, Verdict};

/// Shorter than any expiry.
const LATE: Duration = Duration::from_millis(25);

/// The events that must occur in a run.
const EVENTS: [&str; 49] = [
    "append",
    "copy_to",
    "del",
    "expire",
    "hdel",
    "hincrby",
    "hincrbyfloat",
    "hset",
    "incrby",
    "incrbyfloat",
    "keymiss",
    "linsert",
    "lpop",
    "lpush",
    "lrem",
    "lset",
    "ltrim",
    "move_from",
    "move_to",
    "new",
    "persist",
    "rename_from",
    "rename_to",
    "rpop",
    "rpush",
    "sadd",
    "sdiffstore",
    "set",
    "setrange",
    "sinterstore",
    "spop",
    "srem",
    "sunionstore",
    "zadd",
    "zdiffstore",
    "zincr",
    "zinterstore",
    "zpopmax",
    "zpopmin",
    "zrangestore",
    "zrem",
    "zremrangebylex",
    "zremrangebyrank",
    "zremrangebyscore",
    "zunionstore",
    "EXEC",
    "EVAL",
    "CONFIG SET",
    "PSUBSCRIBE",
];

/// The events that must occur in a run of the commands that only Valkey has.
const VALKEY_EVENTS: [&str; 11] =
    ["del", "expire", "hdel", "hexpire", "hexpired", "hincrby", "hpersist", "hset", "keymiss", "new", "set"];

/// The first commands of a script: most commands on collections change one that is there.
const FILLING: [&str; 7] = [
    "HSET h a 1 b 2 v 3",
    "RPUSH l a b c v a",
    "SADD s a b c v",
    "SADD t b c",
    "ZADD z 1 a 2 b 3 c",
    "SET a v",
    "SET b 5 EX 1000",
];

/// The settings of a script.
const CLASSES: &[&str] = &["KEAnm", "KEAnm", "KEAnm", "KEAnm", "Kg$lshz", "Eglnm", "KEmszh$", "KA", "An", ""];

/// A script: the setting, and commands.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    classes: &'static str,
    commands: Vec<Command>,
}

/// Draws a script.
pub(crate) fn scripts() -> impl Strategy<Value = Script> {
    let groups = [&templates::KEYS, &templates::TRANSACTIONS].into_iter().chain(collections::ALL);
    of(prop_oneof![20 => lasting(groups), 1 => lua::collections()])
}

/// Draws a script of the commands that only Valkey has.
pub(crate) fn valkey_scripts() -> impl Strategy<Value = Script> {
    of(lasting([&fields::LASTING, &fields::LASTING, &fields::KEYS, &templates::TRANSACTIONS]))
}

/// Draws commands of these groups, but none with a point in time.
fn lasting<'a>(groups: impl IntoIterator<Item = &'a Group>) -> BoxedStrategy<Command> {
    let commands = Union::new(groups.into_iter().map(command::of).collect::<Vec<_>>());
    let lasting = commands.prop_filter("expires, or is misread", |command| {
        let is_time = |word: &Word| matches!(word, Word::UnixMillis(_) | Word::UnixSeconds(_));
        !command.words.iter().any(is_time) && !is_misread(command)
    });
    lasting.boxed()
}

/// Returns true if a key has the name of an option: Valkey drops it with the option where it rewrites the
/// command, and its event names the word after it (docs/fidelity.md).
fn is_misread(command: &Command) -> bool {
    let options = ["NX", "XX", "FNX", "FXX", "EX", "PX", "EXAT", "PXAT", "KEEPTTL", "FIELDS"];
    let is_one_of = |word: usize, names: &[&str]| match command.words.get(word) {
        Some(Word::Text(text)) => names.iter().any(|name| text.eq_ignore_ascii_case(name.as_bytes())),
        _ => false,
    };
    is_one_of(0, &["HSETEX"]) && is_one_of(1, &options)
}

fn of(commands: impl Strategy<Value = Command>) -> impl Strategy<Value = Script> {
    (select(CLASSES), vec(commands, 1..20)).prop_map(|(classes, drawn)| {
        let filling = FILLING.map(|text| Command::new(text, text.split(' ').map(Word::text).collect()));
        Script { classes, commands: filling.into_iter().chain(drawn).collect() }
    })
}

/// A server with a client, and the listener that gets the events.
struct Side {
    address: SocketAddr,
    client: Connection,
    listener: Connection,
}

impl Side {
    /// Clears the server, and begins to listen.
    fn begin(address: SocketAddr, classes: &str) -> (Self, Vec<String>) {
        let [mut client, mut listener] = [0; 2].map(|_| Connection::open(address).unwrap());
        client.say(b"FLUSHALL\r\n").unwrap();
        client.say(b"SCRIPT FLUSH\r\n").unwrap();
        let words = ["CONFIG", "SET", "notify-keyspace-events", classes].map(|word| word.as_bytes().to_vec());
        let mut replies = vec![client.say(&wire::request(&words)).unwrap()];
        replies.push(client.say(b"CONFIG GET notify-keyspace-events\r\n").unwrap());
        replies.push(listener.say(b"PSUBSCRIBE __key*\r\n").unwrap());
        (Self { address, client, listener }, replies.iter().map(Reply::to_string).collect())
    }

    /// Sends a command. Returns its reply, and the messages about it.
    fn say(&mut self, request: &[u8]) -> (Reply, Vec<String>) {
        let reply = self.client.say(request).unwrap();
        if reply.is_end() {
            self.client = Connection::open(self.address).unwrap();
        }
        let messages = self.listener.say_all(&[]).unwrap().iter().map(Reply::to_string).collect::<Vec<_>>();
        (reply, messages.into_iter().filter(|message| !is_expiry(message)).collect())
    }
}

/// Returns true if a key has expired: the live server removes it at a time of its own.
fn is_expiry(message: &str) -> bool {
    message.contains("__:expired ") || message.ends_with(" expired")
}

/// Runs `script` on both servers.
pub(crate) fn run(script: &Script, servers: Servers, tally: &Tally) -> Verdict {
    let start = Instant::now();
    let (mut live, theirs) = Side::begin(servers.live, script.classes);
    let (mut simulated, ours) = Side::begin(servers.simulated, script.classes);
    let mut text = format!("notify-keyspace-events {:?}\n", script.classes);
    if theirs != ours {
        let _ = writeln!(text, "  live:      {theirs:#?}\n  simulated: {ours:#?}");
        return Verdict::Different(text);
    }
    let mut kinds = vec![String::from("CONFIG SET"), String::from("PSUBSCRIBE")];
    for command in &script.commands {
        let request = wire::request(&command.words(0));
        let ((reply, theirs), (_, ours)) = (live.say(&request), simulated.say(&request));
        if start.elapsed() > LATE {
            return Verdict::Late;
        }
        let _ = writeln!(text, "{command}\n          {reply}");
        if theirs != ours {
            let _ = writeln!(text, "  live:      {theirs:#?}\n  simulated: {ours:#?}");
            return Verdict::Different(text);
        }
        kinds.extend(kinds_of(command, &theirs));
    }
    kinds.iter().for_each(|kind| tally.count(kind));
    Verdict::Same
}

/// Returns the names of the events, and that of a command which runs others and caused one.
fn kinds_of(command: &Command, messages: &[String]) -> Vec<String> {
    let name = |message: &String| {
        let (_, after) = message.split_once(" __keyevent@")?;
        let (_, event) = after.split(' ').next()?.split_once("__:")?;
        Some(event.to_owned())
    };
    let mut kinds: Vec<_> = messages.iter().filter_map(name).collect();
    if !kinds.is_empty() && ["EXEC", "EVAL"].contains(&command.kind.as_str()) {
        kinds.push(command.kind.clone());
    }
    kinds
}

/// Returns the kinds that must occur in a run.
pub(crate) fn kinds() -> impl Iterator<Item = String> {
    EVENTS.iter().map(|event| (*event).to_owned())
}

/// Returns the kinds that must occur in a run of the commands that only Valkey has.
pub(crate) fn valkey_kinds() -> impl Iterator<Item = String> {
    VALKEY_EVENTS.iter().map(|event| (*event).to_owned())
}

/// Lets a key expire, and has a client look for it. Returns the messages about it.
pub(crate) fn of_expiry(address: SocketAddr) -> Vec<String> {
    let (mut client, mut listener) = (Connection::open(address).unwrap(), Connection::open(address).unwrap());
    client.say(b"CONFIG SET notify-keyspace-events KExm\r\n").unwrap();
    listener.say(b"PSUBSCRIBE __key*\r\n").unwrap();
    client.say(b"SET short 1 PX 10\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(60));
    client.say(b"GET short\r\n").unwrap();
    let messages = listener.say_all(&[]).unwrap();
    client.say(b"CONFIG SET notify-keyspace-events \"\"\r\n").unwrap();
    messages.iter().map(Reply::to_string).collect()
}
