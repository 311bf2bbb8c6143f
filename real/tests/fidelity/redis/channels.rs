//! Scripts in which two clients publish and listen. A command there may be answered by several replies, and
//! messages come unasked: after each step, all that has come to either client is compared, in its order.

use std::fmt::Write as _;
use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::{any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::Strategy;

use super::command::{self, Command, Word};
use super::script::Servers;
use super::templates::CHANNELS;
use super::wire::{self, Connection, Reply};
use crate::harness::{Tally, Verdict};

/// What must have come about in a run.
pub(crate) const KINDS: [&str; 7] = [
    "subscribe",
    "unsubscribe",
    "message",
    "message in RESP3",
    "message to its sender",
    "ping while listening",
    "refusal while listening",
];

/// What else is said.
const OTHER: &[&str] =
    &["HELLO 2", "HELLO 3", "HELLO 3", "PING", "PING text", "GET a", "RESET", "QUIT", "NOSUCH"];

/// A script: whether the second client says it, and what.
pub(crate) fn scripts() -> impl Strategy<Value = Vec<(bool, Command)>> {
    let other = select(OTHER).prop_map(|text| Command::new(text, text.split(' ').map(Word::text).collect()));
    vec((any::<bool>(), prop_oneof![3 => command::of(&CHANNELS), 1 => other]), 1..16)
}

/// Runs `script` on both servers.
pub(crate) fn run(script: &[(bool, Command)], servers: Servers, tally: &Tally) -> Verdict {
    let (mut live, mut simulated) = (Pair::connect(servers.live), Pair::connect(servers.simulated));
    let (mut text, mut kinds) = (String::new(), Vec::new());
    for (second, command) in script {
        let client = usize::from(*second);
        let request = wire::request(&command.words(0));
        let (theirs, ours) = (live.say(client, &request), simulated.say(client, &request));
        let _ = writeln!(text, "client {}: {command}", client + 1);
        if in_some_order(command, &theirs) != in_some_order(command, &ours) {
            let _ = writeln!(text, "  live:      {theirs:#?}\n  simulated: {ours:#?}");
            return Verdict::Different(text);
        }
        theirs.iter().for_each(|line| {
            let _ = writeln!(text, "          {line}");
        });
        kinds.extend(theirs.iter().flat_map(|line| kinds_of(line, client)));
    }
    live.end();
    simulated.end();
    kinds.iter().for_each(|kind| tally.count(kind));
    Verdict::Same
}

/// Two clients of one server.
struct Pair {
    address: SocketAddr,
    clients: [Connection; 2],
}

impl Pair {
    fn connect(address: SocketAddr) -> Self {
        Self { address, clients: [0; 2].map(|_| Connection::open(address).unwrap()) }
    }

    /// Sends a request of one client, and returns what comes to it, and then to the other.
    fn say(&mut self, client: usize, request: &[u8]) -> Vec<String> {
        let mut told = Vec::new();
        for (client, request) in [(client, request), (1 - client, &[])] {
            let replies = self.clients[client].say_all(request).unwrap();
            if replies.last().is_some_and(Reply::is_end) {
                self.clients[client] = Connection::open(self.address).unwrap();
            }
            told.extend(replies.iter().map(|reply| format!("to {}: {}", client + 1, shown(reply))));
        }
        told
    }

    /// Has the server forget who listens, before the next script begins.
    fn end(mut self) {
        for client in &mut self.clients {
            client.say_all(b"RESET\r\n").unwrap();
        }
    }
}

/// A reply without what is the server's own choice: the number of a connection.
fn shown(reply: &Reply) -> String {
    let text = reply.to_string();
    match text.split_once("$2 id :") {
        Some((before, after)) => format!("{before}$2 id :_ {}", after.split_once(' ').unwrap_or_default().1),
        None => text,
    }
}

/// The words of all replies: the channels that are left all at once come in no order.
fn in_some_order<'a>(command: &Command, told: &'a [String]) -> Vec<&'a str> {
    if command.kind != "UNSUBSCRIBE" || command.words.len() > 1 {
        return told.iter().map(String::as_str).collect();
    }
    let mut words: Vec<_> = told.iter().flat_map(|line| line.split(' ')).collect();
    words.sort_unstable();
    words
}

/// What a reply counts as; `sender` has sent the command.
fn kinds_of(line: &str, sender: usize) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for (word, kind) in [
        ("$9 subscribe ", "subscribe"),
        ("$11 unsubscribe ", "unsubscribe"),
        ("*3 $7 message ", "message"),
        (">3 $7 message ", "message in RESP3"),
        ("*2 $4 pong ", "ping while listening"),
        ("-ERR Can\\'t execute ", "refusal while listening"),
    ] {
        kinds.extend(line.contains(word).then_some(kind));
    }
    let to_sender = line.contains("$7 message ") && line.starts_with(&format!("to {}", sender + 1));
    kinds.extend(to_sender.then_some("message to its sender"));
    kinds
}
