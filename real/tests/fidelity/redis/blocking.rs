//! Scripts in which three clients push elements and wait for them. After each step, the replies to all
//! clients are compared, and the clients that still wait.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::{Just, prop_oneof};
use proptest::strategy::Strategy;

use super::command::{self, Command};
use super::script::Servers;
use super::templates::Group;
use super::wire::{self, Connection, Reply};
use crate::harness::{Tally, Verdict};

const CLIENTS: usize = 3;
/// The timeouts in scripts are half a wait more than a whole number of waits.
const WAIT: Duration = Duration::from_millis(160);
const LATE: Duration = Duration::from_millis(60);
/// The time for which a reply is awaited before the server is asked whether the client waits.
const GLANCE: Duration = Duration::from_millis(1);
/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// The commands that wait.
pub(crate) const NAMES: [&str; 8] =
    ["BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP"];

const WAITING: Group = Group {
    weight: 1,
    may_be_mangled: false,
    templates: &[
        "BLPOP l 0",
        "BLPOP l m 0",
        "BLPOP m l 0.08",
        "BRPOP l 0",
        "BRPOP z l 0.24",
        "BLMOVE l m LEFT RIGHT 0",
        "BLMOVE l l RIGHT LEFT 0",
        "BLMOVE m z LEFT LEFT 0.08",
        "BRPOPLPUSH l m 0",
        "BRPOPLPUSH l z 0",
        "BRPOPLPUSH m l 0.08",
        "BLMPOP 0 2 l m LEFT COUNT 2",
        "BLMPOP 0.08 1 m RIGHT",
        "BZPOPMIN z 0",
        "BZPOPMIN y z 0.08",
        "BZPOPMAX z y 0",
        "BZPOPMAX y 0.08",
        "BZMPOP 0 2 z y MIN COUNT 2",
        "BZMPOP 0.24 1 y MAX",
        "BLPOP l x",
        "BLPOP l -1",
        "BLPOP l 1e400",
        "BLPOP l inf",
        "BLPOP l",
        "BLMOVE l m LEFT UP 0",
        "BLMOVE l m LEFT RIGHT x",
        "BRPOPLPUSH l m -1",
        "BLMPOP 0 0 l LEFT",
        "BLMPOP x 1 l LEFT",
        "BLMPOP 0 1 l LEFT COUNT 0",
        "BZMPOP 0 1 z MID",
        "BZPOPMIN z nan",
    ],
};

const SERVING: Group = Group {
    weight: 1,
    may_be_mangled: false,
    templates: &[
        "LPUSH l a",
        "RPUSH l a b c",
        "RPUSH m x y",
        "LPUSH m <member>",
        "ZADD z 1 a 2 b",
        "ZADD y 3 c",
        "ZADD y INCR 1 d",
        "SET l v",
        "DEL l",
        "DEL z m",
        "RENAME m l",
        "RENAME y z",
        "LMOVE m l LEFT LEFT",
        "COPY z y REPLACE",
        "COPY y z",
        "SUNIONSTORE l s",
        "ZUNIONSTORE z 1 y",
        "ZRANGESTORE y z 0 -1",
        "SELECT <db>",
        "SELECT 0",
        "MOVE l 1",
        "MOVE z 1",
        "SWAPDB 0 1",
        "COPY l l DB 1",
        "LRANGE l 0 -1",
        "LRANGE m 0 -1",
        "ZRANGE z 0 -1 WITHSCORES",
        "ZCARD y",
        "EXPIRE l 100",
        "HELLO 3",
        "MULTI",
        "MULTI",
        "EXEC",
        "EXEC",
        "DISCARD",
        "WATCH l",
        "FLUSHALL",
    ],
};

/// Scripts of Lua that push, and that call commands which wait.
const EVALS: &[&str] = &[
    "redis.call('LPUSH', 'l', 'a'); redis.call('RPUSH', 'm', 'b'); return redis.call('LLEN', 'l')",
    "redis.call('RPUSH', 'm', 'b'); redis.call('LPUSH', 'l', 'a')",
    "redis.call('LPUSH', 'l', 'a'); return redis.call('DEL', 'l')",
    "return redis.call('BLMPOP', 0, 1, 'l', 'LEFT')",
    "return redis.call('BZMPOP', 0, 1, 'z', 'MIN')",
    "return redis.pcall('BLPOP', 'l', 0)",
    "return redis.pcall('BLMOVE', 'l', 'm', 'LEFT', 'LEFT', 0)",
];

/// One step of a script, and the client that makes it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    client: usize,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    Ask(Command),
    /// The client closes its connection and opens another.
    Leave,
    Wait,
}

/// Draws a script.
pub(crate) fn scripts() -> impl Strategy<Value = Vec<Step>> {
    let eval = proptest::sample::select(EVALS)
        .prop_map(|text| Command::new("EVAL", ["EVAL", text, "0"].map(command::Word::text).to_vec()));
    let action = prop_oneof![
        9 => command::of(&WAITING).prop_map(Action::Ask),
        12 => command::of(&SERVING).prop_map(Action::Ask),
        2 => eval.prop_map(Action::Ask),
        1 => Just(Action::Leave),
        2 => Just(Action::Wait),
    ];
    vec((0..CLIENTS, action).prop_map(|(client, action)| Step { client, action }), 2..20)
}

/// Returns the commands and the kinds of reply that must occur in a run.
pub(crate) fn kinds() -> impl Iterator<Item = String> {
    NAMES.into_iter().chain(["at once", "after a wait", "in vain"]).map(str::to_owned)
}

/// Runs `script` on both servers.
pub(crate) fn run(script: &[Step], servers: Servers, tally: &Tally) -> Verdict {
    let (mut live, mut simulated) = (Side::connect(servers.live), Side::connect(servers.simulated));
    let (mut text, mut kinds) = (String::new(), Vec::new());
    let (start, mut waits) = (Instant::now(), 0);
    for step in script {
        if !matches!(step.action, Action::Wait | Action::Leave) && live.waiting.contains(&step.client) {
            continue;
        }
        let mut replies = [Vec::new(), Vec::new()];
        match &step.action {
            Action::Wait => {
                waits += 1;
                std::thread::sleep((start + WAIT * waits).saturating_duration_since(Instant::now()));
                replies = [live.settle(), simulated.settle()];
                let _ = writeln!(text, "(wait {} ms)", WAIT.as_millis());
            }
            Action::Leave => {
                live.leave(step.client);
                simulated.leave(step.client);
                let _ = writeln!(text, "client {}: (reconnects)", step.client + 1);
            }
            Action::Ask(command) => {
                let words = command.words(0);
                replies = [live.ask(step.client, &words), simulated.ask(step.client, &words)];
                let _ = writeln!(text, "client {}: {command}", step.client + 1);
            }
        }
        if start.elapsed() > WAIT * waits + LATE {
            return Verdict::Late;
        }
        let [theirs, ours] = &replies;
        if shown(theirs) != shown(ours) || live.waiting != simulated.waiting {
            let (theirs, ours) = (shown(theirs), shown(ours));
            let (waiting, wait) = (&live.waiting, &simulated.waiting);
            let _ = writeln!(text, "  live:      {theirs} {waiting:?}\n  simulated: {ours} {wait:?}");
            return Verdict::Different(text);
        }
        let _ = writeln!(text, "          {}", shown(theirs));
        kinds.extend(theirs.iter().filter_map(|answer| answer.kind()));
    }
    for (name, way) in kinds.iter().filter_map(|kind| kind.split_once(' ')) {
        tally.count(name);
        tally.count(way);
    }
    Verdict::Same
}

/// Returns the replies to a client whose timeout has come, and to another one that has asked since, with the
/// numbers of the clients that still wait.
pub(crate) fn ask_after_a_timeout(server: SocketAddr) -> (String, BTreeSet<usize>) {
    let mut side = Side::connect(server);
    let words = |text: &str| text.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let mut answers = side.ask(0, &words("BLPOP l 0.01"));
    std::thread::sleep(WAIT);
    answers.extend(side.ask(1, &words("BZPOPMAX z 0")));
    (shown(&answers), side.waiting)
}

/// A reply to a client.
struct Answer {
    client: usize,
    /// The command.
    name: String,
    has_waited: bool,
    reply: Reply,
}

impl Answer {
    /// Returns the kind of the reply to a command that waits, unless that is an error.
    fn kind(&self) -> Option<String> {
        let is_success = !self.reply.is_error() && !self.reply.is_queued();
        let is_none = matches!(&*self.reply.0, b"*-1\r\n" | b"$-1\r\n" | b"_\r\n");
        let way = match (is_none, self.has_waited) {
            (true, _) => "in vain",
            (false, true) => "after a wait",
            (false, false) => "at once",
        };
        (is_success && NAMES.contains(&&*self.name)).then(|| format!("{} {way}", self.name))
    }
}

fn shown(answers: &[Answer]) -> String {
    let shown =
        |answer: &Answer| format!("to {}: {}", answer.client + 1, without_number(&answer.reply.to_string()));
    answers.iter().map(shown).collect::<Vec<_>>().join("; ")
}

/// Returns the reply without the number of the connection, which the server chooses. HELLO tells it, also in
/// a transaction.
fn without_number(reply: &str) -> String {
    const NUMBER: &str = "$2 id :";
    match reply.split_once(NUMBER) {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
            format!("{before}{NUMBER}…{rest}")
        }
        None => reply.to_owned(),
    }
}

/// The clients of one server.
struct Side {
    address: SocketAddr,
    clients: Vec<Connection>,
    /// The last command of each client.
    names: [String; CLIENTS],
    control: Connection,
    /// The clients that wait.
    waiting: BTreeSet<usize>,
}

impl Side {
    fn connect(address: SocketAddr) -> Self {
        let open = || Connection::open(address).unwrap();
        let mut control = open();
        let deadline = Instant::now() + PATIENCE;
        // The clients of the last script leave.
        while blocked(&mut control) > 0 {
            assert!(Instant::now() < deadline, "the clients of the last script still wait");
        }
        control.say(b"FLUSHALL\r\n").unwrap();
        let clients = (0..CLIENTS).map(|_| open()).collect();
        Self { address, clients, names: Default::default(), control, waiting: BTreeSet::new() }
    }

    /// Sends a command, and returns the replies to all clients.
    fn ask(&mut self, client: usize, words: &[Vec<u8>]) -> Vec<Answer> {
        self.names[client] = String::from_utf8_lossy(&words[0]).into_owned();
        self.clients[client].send(&wire::request(words)).unwrap();
        let mut answers = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(reply) = self.clients[client].poll(GLANCE).unwrap() {
                answers.push(self.answer(client, reply, false));
                break;
            }
            if NAMES.contains(&&*self.names[client]) && blocked(&mut self.control) > self.waiting.len() {
                self.waiting.insert(client);
                break;
            }
            // On a busy machine the timeout of another client may have come: it waits no longer.
            answers.extend(self.served());
            assert!(Instant::now() < deadline, "no reply to {}", self.names[client]);
        }
        answers.extend(self.settle());
        answers
    }

    /// Returns the replies to those clients that wait no longer.
    fn settle(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        // An idle live server looks at timeouts ten times a second, but also after any request.
        blocked(&mut self.control);
        let still = blocked(&mut self.control);
        while self.waiting.len() > still {
            answers.extend(self.served());
            assert!(Instant::now() < deadline, "no reply to a client that waits no longer");
        }
        answers.sort_by_key(|answer| answer.client);
        answers
    }

    /// Returns the replies to waiting clients that have come.
    fn served(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        for client in self.waiting.clone() {
            if let Some(reply) = self.clients[client].poll(GLANCE).unwrap() {
                self.waiting.remove(&client);
                answers.push(self.answer(client, reply, true));
            }
        }
        answers
    }

    fn leave(&mut self, client: usize) {
        self.clients[client] = Connection::open(self.address).unwrap();
        self.waiting.remove(&client);
        let deadline = Instant::now() + PATIENCE;
        while blocked(&mut self.control) > self.waiting.len() {
            assert!(Instant::now() < deadline, "a client that has left still waits");
        }
    }

    fn answer(&self, client: usize, reply: Reply, has_waited: bool) -> Answer {
        Answer { client, name: self.names[client].clone(), has_waited, reply }
    }
}

/// Returns the number of clients that wait.
fn blocked(control: &mut Connection) -> usize {
    let info = control.say(b"INFO clients\r\n").unwrap().to_string();
    let number = info.split_whitespace().find_map(|line| line.strip_prefix("blocked_clients:"));
    number.and_then(|number| number.parse().ok()).unwrap()
}
