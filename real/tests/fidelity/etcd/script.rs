//! Draws scripts of requests, and runs one on both servers.

use std::cell::Cell;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use etcd_client::Client;
use proptest::collection::vec;
use proptest::prelude::{Just, prop_oneof};
use proptest::strategy::Strategy;
use tokio::runtime::{self, Runtime};

use super::draw::{beginnings, ops};
use super::op::{Op, SHORT_TTL};
use super::side::{Side, WAITS};
use crate::harness::{Tally, Verdict};

/// The duration of a wait: a short lease expires in it, and etcd, which checks twice a second, revokes it.
const WAIT: Duration = Duration::from_millis(5500);
/// The least lifetime of a short lease, counted from the last wait or the beginning.
const LATE: Duration = Duration::from_secs(SHORT_TTL.unsigned_abs() - 1);
/// The time without notifications from either server after which no more are expected.
const QUIET: Duration = Duration::from_millis(200);
/// The longest that one server may lag behind the other before they count as different.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The number of lease ids reserved for each script.
const LEASES: i64 = 10;

/// The kinds of operation that must have succeeded in a run.
pub(crate) const KINDS: [&str; 22] = [
    "put",
    "range",
    "delete",
    "txn, then",
    "txn, else",
    "txn, nested then",
    "txn, nested else",
    "txn, too many operations",
    "compact",
    "lease grant",
    "lease revoke",
    "lease keepalive",
    "lease ttl",
    "leases",
    "watch created",
    "watch put",
    "watch delete",
    "watch cancelled",
    "watch compacted",
    "lock",
    "lock after a wait",
    "unlock",
];

/// Draws a script.
pub(crate) fn scripts() -> impl Strategy<Value = Vec<Op>> {
    let steps = vec(prop_oneof![300 => ops(), 1 => Just(Op::Wait)], 1..20);
    (beginnings(), steps).prop_map(|(beginning, steps)| [beginning, steps].concat())
}

/// Both servers.
pub(crate) struct Servers {
    runtime: Runtime,
    live: Client,
    simulated: Client,
    /// The number of scripts run so far: each has lease ids of its own.
    scripts: Cell<i64>,
}

impl Servers {
    pub(crate) fn connect(live: &str, simulated: &str) -> Self {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let open = |address: &str| runtime.block_on(Client::connect([address], None)).unwrap();
        Self { live: open(live), simulated: open(simulated), runtime, scripts: Cell::new(0) }
    }

    /// Runs a script on both.
    pub(crate) fn run(&self, script: &[Op], tally: &Tally) -> Verdict {
        self.scripts.set(self.scripts.get() + 1);
        let lease = self.scripts.get() * LEASES;
        self.runtime.block_on(async {
            let live = Side::begin(self.live.clone(), lease).await;
            let simulated = Side::begin(self.simulated.clone(), lease).await;
            let mut run =
                Run { live, simulated, text: String::new(), released: Vec::new(), kinds: Vec::new() };
            let verdict = run.all(script).await;
            if matches!(verdict, Verdict::Same) {
                run.kinds.iter().for_each(|kind| tally.count(kind));
            }
            run.live.end();
            run.simulated.end();
            verdict
        })
    }
}

/// A script on both servers.
struct Run {
    live: Side,
    simulated: Side,
    text: String,
    released: Vec<String>,
    kinds: Vec<&'static str>,
}

impl Run {
    async fn all(&mut self, script: &[Op]) -> Verdict {
        let mut since = Instant::now();
        let mut may_notify = false;
        for op in script {
            if let Op::Wait = op {
                tokio::time::sleep(WAIT).await;
                since = Instant::now();
                let _ = writeln!(self.text, "(wait {WAIT:?})");
                continue;
            }
            // A request's changes must not race with notifications still under way.
            if may_notify
                && !matches!(op, Op::Range(_) | Op::TimeToLive { .. } | Op::Put(_))
                && !self.settle().await
            {
                return self.difference();
            }
            may_notify |= matches!(op, Op::Watch(_) | Op::Lock { .. });
            let key = self.held();
            let seen = (self.live.notifications().len(), self.simulated.notifications().len());
            let mut live = self.live.carry_out(op, key.as_deref()).await;
            let mut simulated = self.simulated.carry_out(op, key.as_deref()).await;
            if let Op::Lock { name, .. } = op {
                // If only one has answered, the other may be slow, on a busy machine.
                match (live == WAITS, simulated == WAITS) {
                    (true, false) => live = self.live.late_answer(name, seen.0, TIMEOUT).await,
                    (false, true) => simulated = self.simulated.late_answer(name, seen.1, TIMEOUT).await,
                    _ => {}
                }
            }
            if since.elapsed() > LATE {
                return Verdict::Late;
            }
            let _ = writeln!(self.text, "{op:?}");
            if live != simulated {
                let _ = writeln!(self.text, "  live:      {live}\n  simulated: {simulated}");
                return Verdict::Different(std::mem::take(&mut self.text));
            }
            let _ = writeln!(self.text, "    {live}");
            self.note(op, &live, key);
        }
        if may_notify && !self.settle().await {
            return self.difference();
        }
        self.note_notifications();
        Verdict::Same
    }

    /// Waits until no more notifications come; returns true if both servers have sent the same.
    async fn settle(&self) -> bool {
        let begun = Instant::now();
        let (mut count, mut since) = (0, Instant::now());
        loop {
            let (live, simulated) = (self.live.notifications(), self.simulated.notifications());
            if live.len() + simulated.len() != count {
                (count, since) = (live.len() + simulated.len(), Instant::now());
            }
            if since.elapsed() > QUIET && (live == simulated || begun.elapsed() > TIMEOUT) {
                return live == simulated;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn difference(&mut self) -> Verdict {
        let (live, simulated) = (self.live.notifications(), self.simulated.notifications());
        let _ = writeln!(self.text, "notifications\n  live:      {live:#?}\n  simulated: {simulated:#?}");
        Verdict::Different(std::mem::take(&mut self.text))
    }

    /// Returns the key of the lock that was granted first and not released.
    fn held(&self) -> Option<String> {
        let at_once = self.text.lines().map(str::trim).filter(|line| is_lock_key(line)).map(str::to_owned);
        let notifications =
            self.live.notifications().into_iter().map(|(_, text)| text).filter(|text| is_lock_key(text));
        at_once.chain(notifications).find(|key| !self.released.contains(key))
    }

    fn note(&mut self, op: &Op, answer: &str, key: Option<String>) {
        if answer == WAITS || answer.starts_with('(') {
            return;
        }
        self.kinds.extend(nested_kinds(answer));
        let is_refused =
            answer.split_once(": ").is_some_and(|(code, _)| code.chars().all(char::is_alphanumeric));
        if is_refused {
            return;
        }
        self.kinds.push(match op {
            Op::Put(_) => "put",
            Op::Range(_) => "range",
            Op::Delete(_) => "delete",
            Op::Txn { .. } if answer.contains("succeeded: true") => "txn, then",
            Op::Txn { .. } => "txn, else",
            Op::Compact(_) => "compact",
            Op::Grant { .. } => "lease grant",
            Op::Revoke(_) => "lease revoke",
            Op::KeepAlive(_) => "lease keepalive",
            Op::TimeToLive { .. } => "lease ttl",
            Op::Leases => "leases",
            Op::Lock { .. } => "lock",
            Op::Unlock => "unlock",
            Op::Watch(_) | Op::Cancel(_) | Op::Progress | Op::Wait => return,
        });
        if let Op::Unlock = op {
            self.released.extend(key);
        }
    }

    fn note_notifications(&mut self) {
        for (who, text) in self.live.notifications() {
            self.kinds.push(match text.split([' ', ',']).next().unwrap_or_default() {
                "created" => "watch created",
                "put" => "watch put",
                "delete" => "watch delete",
                "progress" => "watch progress",
                "cancelled" if text.contains("compacted at 0") => "watch cancelled",
                "cancelled" => "watch compacted",
                _ if who.starts_with("lock") && is_lock_key(&text) => "lock after a wait",
                _ => continue,
            });
        }
    }
}

/// Returns the kinds of the transactions nested in one, and of one that was refused for their number.
fn nested_kinds(answer: &str) -> Vec<&'static str> {
    if answer.contains("too many operations") {
        return vec!["txn, too many operations"];
    }
    let nested = answer.split("ResponseTxn(").skip(1);
    let kind = |part: &str| {
        let is_met = part.split_once("succeeded: ").is_some_and(|(_, rest)| rest.starts_with("true"));
        if is_met { "txn, nested then" } else { "txn, nested else" }
    };
    nested.map(kind).collect()
}

/// Returns true for a lock's key: its name, and the lease in hexadecimal digits.
fn is_lock_key(text: &str) -> bool {
    let lease = text.strip_prefix("lock/").or_else(|| text.strip_prefix("other/"));
    lease.is_some_and(|lease| !lease.is_empty() && lease.chars().all(|digit| digit.is_ascii_hexdigit()))
}
