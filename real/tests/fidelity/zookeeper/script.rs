//! Draws scripts, and runs one on both servers.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::{Just, prop_oneof};
use proptest::strategy::Strategy;

use super::op::{LONG, Login, Op, SHORT, beginnings, ops};
use super::side::{Clients, HUNG_UP, Side};
use crate::harness::{Tally, Verdict};

/// The duration of a wait: a short session expires in it, and the server, which checks at every tick, ends
/// it.
const WAIT: Duration = Duration::from_millis(2200);
/// The least lifetime of a short session, counted from the last wait or the beginning.
const LATE: Duration = Duration::from_millis(1200);
/// The least lifetime of a session with the shortest timeout that servers grant.
const BRIEFLY: Duration = Duration::from_millis(80);

/// The kinds of reply and event that must occur in a run.
pub(crate) const KINDS: [&str; 43] = [
    "session",
    "session by Again",
    "session by Take",
    "session refused",
    "session expired",
    "hung up",
    "create",
    "create ephemeral",
    "create sequential",
    "create ephemeral sequential",
    "create2",
    "create2 ephemeral",
    "create2 sequential",
    "create2 ephemeral sequential",
    "delete",
    "exists",
    "exists with a watch",
    "getData",
    "getData with a watch",
    "setData",
    "getChildren",
    "getChildren with a watch",
    "getChildren2",
    "getChildren2 with a watch",
    "sync",
    "ping",
    "setWatches",
    "closeSession",
    "event 1",
    "event 2",
    "event 3",
    "event 4",
    "NONODE",
    "NODEEXISTS",
    "BADVERSION",
    "BADARGUMENTS",
    "NOTEMPTY",
    "NOCHILDRENFOREPHEMERALS",
    "NOAUTH",
    "AUTHFAILED",
    "MARSHALLINGERROR",
    "UNIMPLEMENTED",
    "auth",
];

/// Draws a script.
pub(crate) fn scripts() -> impl Strategy<Value = Vec<Op>> {
    let steps = vec(prop_oneof![900 => ops(), 1 => Just(Op::Wait)], 1..30);
    (beginnings(), steps).prop_map(|(beginning, steps)| [beginning, steps].concat())
}

/// Both servers.
pub(crate) struct Servers {
    live: RefCell<Side>,
    simulated: RefCell<Side>,
}

impl Servers {
    pub(crate) fn connect(live: SocketAddr, simulated: SocketAddr) -> Self {
        let open = |address| RefCell::new(Side::connect(address));
        Self { live: open(live), simulated: open(simulated) }
    }

    /// Runs a script on both.
    pub(crate) fn run(&self, script: &[Op], tally: &Tally) -> Verdict {
        let (mut live, mut simulated) = (self.live.borrow_mut(), self.simulated.borrow_mut());
        let mut run = Run {
            live: live.begin(),
            simulated: simulated.begin(),
            text: String::new(),
            since: Instant::now(),
            has_short: false,
            has_expired: false,
        };
        let verdict = run.all(script);
        if matches!(verdict, Verdict::Same) {
            run.live.kinds().iter().for_each(|kind| tally.count(kind));
            if run.has_expired {
                tally.count("session expired");
            }
        }
        run.live.end();
        run.simulated.end();
        verdict
    }
}

/// A script on both servers.
struct Run<'a> {
    live: Clients<'a>,
    simulated: Clients<'a>,
    text: String,
    /// The time of its beginning or last wait.
    since: Instant,
    /// True if a session exists that the next wait outlasts. There is at most one, since two would expire in
    /// no fixed order.
    has_short: bool,
    has_expired: bool,
}

impl Run<'_> {
    fn all(&mut self, script: &[Op]) -> Verdict {
        for op in script {
            let op = &self.adapted(op);
            if let Op::Wait = op {
                std::thread::sleep(WAIT);
            }
            let begun = Instant::now();
            let live = self.live.carry_out(op);
            let between = Instant::now();
            let simulated = self.simulated.carry_out(op);
            if self.is_late(op, (between - begun).max(between.elapsed())) {
                return Verdict::Late;
            }
            if let Op::Wait = op {
                (self.since, self.has_short) = (Instant::now(), false);
                self.has_expired |=
                    live.iter().any(|line| line.contains("event 2") || line.ends_with(HUNG_UP));
            }
            let _ = writeln!(self.text, "{op:?}");
            if live != simulated {
                let _ = writeln!(self.text, "  live:      {live:#?}\n  simulated: {simulated:#?}");
                return Verdict::Different(std::mem::take(&mut self.text));
            }
            live.iter().for_each(|line| {
                let _ = writeln!(self.text, "    {line}");
            });
        }
        Verdict::Same
    }

    /// Returns true if a step came so late, or took so long, that a session may have expired in it.
    fn is_late(&self, op: &Op, took: Duration) -> bool {
        match op {
            Op::Wait => false,
            Op::Connect { login: Login::Brief, .. } if took > BRIEFLY => true,
            _ => self.has_short && self.since.elapsed() > LATE,
        }
    }

    /// Returns the step, with a long timeout where it would open a second short session.
    fn adapted(&mut self, op: &Op) -> Op {
        let mut op = op.clone();
        if let Op::Connect { login, timeout, .. } = &mut op
            && *timeout == SHORT
            && !matches!(login, Login::Brief)
        {
            if self.has_short {
                *timeout = LONG;
            }
            self.has_short = true;
        }
        op
    }
}
