//! Scripts of commands of one client, while another is a monitor. After each command, the lines are compared
//! but for their times and addresses.

use std::fmt::Write as _;
use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::prop_oneof;
use proptest::sample::select;
use proptest::strategy::{Strategy, Union};

use super::command::{self, Command, Word};
use super::script::Servers;
use super::templates;
use super::wire::{self, Connection};
use crate::harness::{Tally, Verdict};

pub(crate) const NAMES: [&str; 1] = ["MONITOR"];

/// The kinds of line that must occur in a run.
pub(crate) const KINDS: [&str; 8] = ["EVAL", "EXEC", "GET", "HELLO", "MULTI", "PUBSUB", "SET", "lua"];

const OTHER: &[&str] = &[
    "SELECT 3",
    "SELECT 0",
    "EXEC now",
    "BLPOP nosuch 0.001",
    "LPUSH list x y",
    "BLPOP list 0.001",
    "PUBSUB NUMPAT",
    "ZADD sorted 1 a",
    "GETEX a PX 100000",
    "SPOP nosuch",
];

const EVALS: &[&str] = &[
    "return redis.call('SET', 'a', '1')",
    "redis.call('SELECT', 2) return redis.pcall('LPUSH', 'a')",
    "redis.call('INCR', 'n') return redis.call('NOSUCH')",
    "return redis.pcall('GET', 'a', 'b')",
    "return redis.call('ECHO', 1.5)",
    "return 1",
    "return (",
];

/// Draws a script.
pub(crate) fn scripts() -> impl Strategy<Value = Vec<Command>> {
    let groups = [&templates::KEYS, &templates::SERVER, &templates::SAFE, &templates::TRANSACTIONS];
    let groups = groups.into_iter().map(|group| (group.weight, command::of(group)));
    let other = select(OTHER).prop_map(|text| Command::new(text, text.split(' ').map(Word::text).collect()));
    let evals =
        select(EVALS).prop_map(|script| Command::new("EVAL", ["EVAL", script, "0"].map(Word::text).to_vec()));
    let commands = prop_oneof![6 => Union::new_weighted(groups.collect()), 2 => other, 1 => evals];
    vec(commands, 1..20)
}

/// A server with a client and a monitor.
struct Side {
    address: SocketAddr,
    client: Connection,
    monitor: Connection,
}

impl Side {
    fn begin(address: SocketAddr) -> Self {
        let [mut client, mut monitor] = [0; 2].map(|_| Connection::open(address).unwrap());
        client.say(b"FLUSHALL\r\n").unwrap();
        monitor.say(b"MONITOR\r\n").unwrap();
        Self { address, client, monitor }
    }

    /// Sends a command, and returns the lines that the monitor gets.
    fn say(&mut self, request: &[u8]) -> Vec<String> {
        let reply = self.client.say(request).unwrap();
        if reply.is_end() || request.to_ascii_lowercase().ends_with(b"quit\r\n") {
            self.client = Connection::open(self.address).unwrap();
        }
        self.monitor.say_all(&[]).unwrap().iter().map(|reply| masked(&reply.to_string())).collect()
    }
}

/// Returns a line without its time and address: `[3 _] "GET" "a"`.
fn masked(line: &str) -> String {
    let parts = || {
        let (_, rest) = line.strip_prefix('+')?.split_once(" [")?;
        let (source, words) = rest.split_once("] ")?;
        let (database, address) = source.split_once(' ')?;
        let address = if address == "lua" { address } else { "_" };
        Some(format!("[{database} {address}] {words}"))
    };
    parts().unwrap_or_else(|| line.to_owned())
}

/// Runs `script` on both servers.
pub(crate) fn run(script: &[Command], servers: Servers, tally: &Tally) -> Verdict {
    let (mut live, mut simulated) = (Side::begin(servers.live), Side::begin(servers.simulated));
    let mut text = String::new();
    let mut kinds = Vec::new();
    for command in script {
        let request = wire::request(&command.words(0));
        let (theirs, ours) = (live.say(&request), simulated.say(&request));
        let _ = writeln!(text, "{command}");
        if theirs != ours {
            let _ = writeln!(text, "  live:      {theirs:#?}\n  simulated: {ours:#?}");
            return Verdict::Different(text);
        }
        kinds.extend(KINDS.into_iter().filter(|kind| {
            let shown = if *kind == "lua" { String::from(" lua] ") } else { format!("] \\\"{kind}\\\"") };
            theirs.iter().any(|line| line.contains(&shown))
        }));
    }
    kinds.iter().for_each(|kind| tally.count(kind));
    Verdict::Same
}
