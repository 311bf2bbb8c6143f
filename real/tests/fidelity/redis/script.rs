//! Draws scripts of commands, and runs one on both servers.
//!
//! Time in a script is counted in waits of [`WAIT`]. Expiries are half a wait more than a whole number of
//! waits, so that no key expires near a command; a script whose commands came late by more than [`LATE`] is
//! not judged.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proptest::collection::vec;
use proptest::prelude::{Just, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::{Strategy, Union};

use super::command::{self, Command, Word};
use super::near::Closeness;
use super::templates::Group;
use super::wire::{self, Connection, Reply};
use super::{collections, fields, lua, templates};
use crate::harness::{Tally, Verdict};

const WAIT: Duration = Duration::from_millis(60);
const LATE: Duration = Duration::from_millis(20);
const CLIENTS: usize = 2;

/// A script.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    has_two_clients: bool,
    steps: Vec<(bool, Step)>,
}

#[derive(Clone, Debug)]
enum Step {
    Ask(Command),
    /// A request as bytes.
    Say(&'static str),
    Wait,
}

/// Draws scripts of all commands, or of those that lock.
pub(crate) fn scripts() -> impl Strategy<Value = Script> {
    let groups = [&templates::KEYS, &templates::SERVER, &templates::SAFE, &templates::TRANSACTIONS];
    let groups = groups.into_iter().map(|group| (group.weight, command::of(group)));
    let commands = Union::new_weighted(groups.chain([(8, lua::commands())]).collect());
    let steps = prop_oneof![
        28 => commands.prop_map(Step::Ask),
        1 => select(templates::WIRE).prop_map(Step::Say),
        2 => Just(Step::Wait),
    ];
    let locks = lua::families()
        .map(|family| of(prop_oneof![8 => family.prop_map(Step::Ask), 1 => Just(Step::Wait)]).boxed());
    prop_oneof![3 => of(steps), 3 => Union::new(locks), 7 => collections()]
}

/// Draws scripts that work on values of one type.
fn collections() -> impl Strategy<Value = Script> {
    let theme = |group: &'static Group, more: &'static Group| {
        of(prop_oneof![
            18 => command::of(group).prop_map(Step::Ask),
            6 => command::of(more).prop_map(Step::Ask),
            2 => command::of(&collections::CHOICES).prop_map(Step::Ask),
            3 => command::of(&collections::ANY).prop_map(Step::Ask),
            2 => command::of(&templates::TRANSACTIONS).prop_map(Step::Ask),
            1 => command::of(&templates::PROTOCOLS).prop_map(Step::Ask),
            2 => lua::collections().prop_map(Step::Ask),
            1 => command::of(&collections::DATABASES).prop_map(Step::Ask),
            1 => Just(Step::Wait),
        ])
    };
    prop_oneof![
        theme(&collections::HASHES, &collections::HASHES),
        theme(&collections::SETS, &collections::SETS),
        theme(&collections::LISTS, &collections::LISTS),
        theme(&collections::SORTED_SETS, &collections::SORTED_RANGES),
        theme(&collections::SORTED_RANGES, &collections::SORTED_SETS),
        theme(&collections::ANY, &templates::KEYS),
        theme(&collections::DATABASES, &collections::HASHES),
        theme(&collections::SORTED_SETS, &collections::SETS),
    ]
}

/// Draws scripts of the commands that Valkey has and Redis 7 lacks.
pub(crate) fn valkey_scripts() -> impl Strategy<Value = Script> {
    let locks = of(prop_oneof![
        20 => command::of(&templates::VALKEY).prop_map(Step::Ask),
        5 => lua::family("redis").prop_map(Step::Ask),
        3 => command::of(&templates::TRANSACTIONS).prop_map(Step::Ask),
        2 => Just(Step::Wait),
    ]);
    let theme = |group: &'static Group, waits: u32| {
        of(prop_oneof![
            24 => command::of(group).prop_map(Step::Ask),
            2 => command::of(&templates::TRANSACTIONS).prop_map(Step::Ask),
            waits => Just(Step::Wait),
        ])
    };
    let kept = || (false, Step::Ask(Command::new("HSET", fields::KEPT.map(Word::text).to_vec())));
    let lapsing = theme(&fields::LAPSING, 3).prop_map(move |mut script| {
        script.steps.insert(0, kept());
        script
    });
    prop_oneof![4 => locks, 3 => theme(&fields::LASTING, 1), 3 => lapsing, 1 => theme(&fields::KEYS, 3)]
}

fn of(steps: impl Strategy<Value = Step>) -> impl Strategy<Value = Script> {
    (any::<bool>(), vec((any::<bool>(), steps), 1..25))
        .prop_map(|(has_two_clients, steps)| Script { has_two_clients, steps })
}

/// Both servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Servers {
    pub(crate) live: SocketAddr,
    pub(crate) simulated: SocketAddr,
}

/// One client of both servers.
struct Client {
    live: Connection,
    simulated: Connection,
    /// The loosest closeness of the queued commands, which holds for the reply to EXEC.
    queued: Closeness,
}

impl Client {
    fn connect(servers: Servers) -> Self {
        let open = |address| Connection::open(address).unwrap();
        Self { live: open(servers.live), simulated: open(servers.simulated), queued: Closeness::Exact }
    }

    fn say(&mut self, request: &[u8]) -> (Reply, Reply) {
        (self.live.say(request).unwrap(), self.simulated.say(request).unwrap())
    }

    /// Returns how closely the replies to a command must agree.
    fn closeness(
        &mut self,
        words: &[Vec<u8>],
        reply: &Reply,
        may_have_expired: bool,
        may_have_table: bool,
    ) -> Closeness {
        let name = String::from_utf8_lossy(&words[0]).to_uppercase();
        let own = match name.as_str() {
            "EVAL" | "EVALSHA" if words.len() > 1 && lua::has_remaining_time(&words[1], reply) => {
                Closeness::Millis
            }
            "EVAL" | "EVALSHA" if words.len() > 1 && may_have_expired && lua::counts_keys(&words[1]) => {
                Closeness::Kind
            }
            "EVAL" | "EVALSHA" if words.len() > 1 && lua::has_unordered(&words[1], may_have_table) => {
                Closeness::Unordered
            }
            "EXEC" => std::mem::replace(&mut self.queued, Closeness::Exact),
            _ => templates::closeness(words, may_have_expired, may_have_table),
        };
        if reply.is_queued() {
            self.queued = self.queued.max(own);
            return Closeness::Exact;
        }
        if reply.is_error() { Closeness::Exact } else { own }
    }
}

/// Runs `script` on both servers.
pub(crate) fn run(script: &Script, servers: Servers, tally: &Tally) -> Verdict {
    let mut run = Run::begin(servers);
    for (second, step) in &script.steps {
        let client = usize::from(*second && script.has_two_clients);
        match step {
            Step::Wait => run.wait(),
            Step::Ask(command) => {
                let words = command.words(run.start_ms);
                let (live, simulated) = run.clients[client].say(&wire::request(&words));
                run.may_have_expired |= command.reaches_back();
                run.may_have_table |= words.iter().any(|word| lua::has_long_text(word));
                run.may_have_table |= fields::makes_table(&words);
                let (expired, table) = (run.may_have_expired, run.may_have_table);
                let closeness = run.clients[client].closeness(&words, &live, expired, table);
                run.succeeded.extend(kinds(command, &live));
                if live.0.is_empty() || words[0].eq_ignore_ascii_case(b"quit") {
                    run.clients[client] = Client::connect(servers);
                }
                let agree = closeness.agree(&live, &simulated);
                run.judge(client, command.to_string(), agree, [live, simulated]);
            }
            Step::Say(request) => {
                let (live, simulated) = run.clients[client].say(request.as_bytes());
                if live.is_error() {
                    run.clients[client] = Client::connect(servers);
                }
                let shown = format!("(bytes) {}", request.escape_default());
                run.judge(client, shown, live == simulated, [live, simulated]);
            }
        }
        if run.is_late() {
            return Verdict::Late;
        }
        if run.is_different {
            return Verdict::Different(run.transcript());
        }
    }
    run.succeeded.iter().for_each(|kind| tally.count(kind));
    Verdict::Same
}

/// A script on both servers.
struct Run {
    clients: Vec<Client>,
    start: Instant,
    start_ms: i64,
    waits: u32,
    said: Vec<Said>,
    is_different: bool,
    may_have_expired: bool,
    /// A text may have been too long for the compact encoding of a hash, which keeps the order of fields, or
    /// a field may have got an expiry.
    may_have_table: bool,
    succeeded: Vec<String>,
}

impl Run {
    /// Clears both servers and begins a script.
    fn begin(servers: Servers) -> Self {
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::connect(servers)).collect();
        for clear in ["FLUSHALL\r\n", "SCRIPT FLUSH\r\n"] {
            let (live, simulated) = clients[0].say(clear.as_bytes());
            assert!(live == simulated && !live.is_error(), "{clear}: {live}, {simulated}");
        }
        Self {
            clients,
            start: Instant::now(),
            start_ms: unix_ms(),
            waits: 0,
            said: Vec::new(),
            is_different: false,
            may_have_expired: false,
            may_have_table: false,
            succeeded: Vec::new(),
        }
    }

    fn wait(&mut self) {
        self.waits += 1;
        self.may_have_expired = true;
        std::thread::sleep((self.start + WAIT * self.waits).saturating_duration_since(Instant::now()));
        self.said.push(Said::Wait);
    }

    fn is_late(&self) -> bool {
        self.start.elapsed() > WAIT * self.waits + LATE
    }

    fn judge(&mut self, client: usize, request: String, agree: bool, replies: [Reply; 2]) {
        self.is_different |= !agree;
        self.said.push(Said::Request { client, request, agree, replies });
    }

    fn transcript(&self) -> String {
        let mut text = String::new();
        for said in &self.said {
            let _ = match said {
                Said::Wait => writeln!(text, "          (wait {} ms)", WAIT.as_millis()),
                Said::Request { client, request, agree: true, replies: [live, _] } => {
                    writeln!(text, "client {}: {request}\n          {live}", client + 1)
                }
                Said::Request { client, request, agree: false, replies: [live, simulated] } => {
                    writeln!(
                        text,
                        "client {}: {request}\n  live:      {live}\n  simulated: {simulated}",
                        client + 1
                    )
                }
            };
        }
        text
    }
}

/// A step that was taken. It is written out for a script that shows a difference: a long reply takes longer
/// than [`LATE`].
enum Said {
    Wait,
    /// With the replies of the live server and of the simulated one.
    Request {
        client: usize,
        request: String,
        agree: bool,
        replies: [Reply; 2],
    },
}

/// Returns the kinds under which a reply is counted; none unless it is a success.
fn kinds(command: &Command, reply: &Reply) -> Vec<String> {
    if reply.is_error() || reply.is_queued() {
        return Vec::new();
    }
    if !command.kind.ends_with(".lua") {
        return vec![command.kind.clone()];
    }
    let text = reply.to_string();
    let answer = match text.as_str() {
        ":0" | ":1" => text,
        // A fencing token.
        _ if text.starts_with(':') => String::from(":n"),
        _ => text.split(' ').take(2).collect::<Vec<_>>().join(" "),
    };
    vec![String::from("EVAL"), format!("{} {answer}", command.kind)]
}

fn unix_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}
