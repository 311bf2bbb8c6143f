//! Scripts in which two clients publish and subscribe. A command may get several replies, and messages come
//! without a request: after each step, all replies to both clients are compared, in order.

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

/// The kinds of reply that must occur in a run.
pub(crate) const KINDS: [&str; 13] = [
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "message",
    "message by pattern",
    "message by pattern in RESP3",
    "PUBSUB CHANNELS",
    "PUBSUB NUMSUB",
    "message in RESP3",
    "message to its sender",
    "ping while listening",
    "refusal while listening",
];

/// Other commands in these scripts.
const OTHER: &[&str] =
    &["HELLO 2", "HELLO 3", "HELLO 3", "PING", "PING text", "GET a", "RESET", "QUIT", "NOSUCH"];

/// Draws a script: commands, each with true if the second client sends it.
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
        if comparable(command, &theirs) != comparable(command, &ours) {
            let _ = writeln!(text, "  live:      {theirs:#?}\n  simulated: {ours:#?}");
            return Verdict::Different(text);
        }
        theirs.iter().for_each(|line| {
            let _ = writeln!(text, "          {line}");
        });
        kinds.extend(theirs.iter().flat_map(|line| kinds_of(line, client)));
        let is_telling = theirs[0].contains(": *") && !theirs[0].contains(": *0");
        let telling = ["PUBSUB CHANNELS", "PUBSUB NUMSUB"].into_iter();
        kinds.extend(telling.filter(|kind| is_telling && command.kind == *kind));
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

    /// Sends a request of one client; returns the replies to it, and then those to the other.
    fn say(&mut self, client: usize, request: &[u8]) -> Vec<String> {
        let mut received = Vec::new();
        for (client, request) in [(client, request), (1 - client, &[])] {
            let replies = self.clients[client].say_all(request).unwrap();
            if replies.last().is_some_and(Reply::is_end) {
                self.clients[client] = Connection::open(self.address).unwrap();
            }
            received.extend(replies.iter().map(|reply| format!("to {}: {}", client + 1, shown(reply))));
        }
        received
    }

    /// Ends all subscriptions before the next script begins.
    fn end(mut self) {
        for client in &mut self.clients {
            client.say_all(b"RESET\r\n").unwrap();
        }
    }
}

/// Shows a reply without the number of a connection, which the server chooses.
fn shown(reply: &Reply) -> String {
    let text = reply.to_string();
    match text.split_once("$2 id :") {
        Some((before, after)) => format!("{before}$2 id :_ {}", after.split_once(' ').unwrap_or_default().1),
        None => text,
    }
}

/// Returns the replies as they are compared. For an UNSUBSCRIBE from all channels, and for PUBSUB CHANNELS,
/// that is their sorted words, since the channels come in no fixed order. Nor do the messages of a client's
/// patterns: those in a row are sorted.
fn comparable<'a>(command: &Command, received: &'a [String]) -> Vec<&'a str> {
    let is_of_all = command.kind == "UNSUBSCRIBE" && command.words.len() == 1;
    if !is_of_all && command.kind != "PUBSUB CHANNELS" {
        let mut lines: Vec<_> = received.iter().map(String::as_str).collect();
        let is_by_pattern = |line: &&str| line.contains("$8 pmessage ");
        lines
            .chunk_by_mut(|one, other| is_by_pattern(one) && is_by_pattern(other))
            .for_each(<[&str]>::sort_unstable);
        return lines;
    }
    let mut words: Vec<_> = received.iter().flat_map(|line| line.split(' ')).collect();
    words.sort_unstable();
    words
}

/// Returns the kinds of a reply; `sender` is the client that sent the command.
fn kinds_of(line: &str, sender: usize) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for (word, kind) in [
        ("$9 subscribe ", "subscribe"),
        ("$11 unsubscribe ", "unsubscribe"),
        ("$10 psubscribe ", "psubscribe"),
        ("$12 punsubscribe ", "punsubscribe"),
        ("*4 $8 pmessage ", "message by pattern"),
        (">4 $8 pmessage ", "message by pattern in RESP3"),
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
