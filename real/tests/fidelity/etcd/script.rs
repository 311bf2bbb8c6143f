//! Scripts of requests, and how one is run on both servers.

use std::cell::Cell;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use etcd_client::Client;
use proptest::collection::vec;
use proptest::prelude::{Just, prop_oneof};
use proptest::strategy::Strategy;
use tokio::runtime::{self, Runtime};

use super::op::{Op, SHORT_TTL, beginnings, ops};
use super::side::{Side, WAITS};
use crate::harness::{Tally, Verdict};

/// How long a wait takes: a short lease has run out, and etcd, which looks twice a second, has ended it.
const WAIT: Duration = Duration::from_millis(5500);
/// A short lease lives for so long at least, counted from any wait or from the beginning.
const LATE: Duration = Duration::from_secs(SHORT_TTL.unsigned_abs() - 1);
/// How long nothing must have come from either server until nothing more is expected.
const QUIET: Duration = Duration::from_millis(200);
/// How long one server may lag behind the other before they differ.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Lease ids between two scripts.
const LEASES: i64 = 10;

/// What must have succeeded in a run.
pub(crate) const KINDS: [&str; 19] = [
    "put",
    "range",
    "delete",
    "txn, then",
    "txn, else",
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

/// A script.
pub(crate) fn scripts() -> impl Strategy<Value = Vec<Op>> {
    let steps = vec(prop_oneof![300 => ops(), 1 => Just(Op::Wait)], 1..20);
    (beginnings(), steps).prop_map(|(beginning, steps)| [beginning, steps].concat())
}

/// Both servers.
pub(crate) struct Servers {
    runtime: Runtime,
    live: Client,
    simulated: Client,
    /// Scripts run so far: each has lease ids of its own.
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
                Run { live, simulated, text: String::new(), given_back: Vec::new(), kinds: Vec::new() };
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

/// A script that runs.
struct Run {
    live: Side,
    simulated: Side,
    text: String,
    given_back: Vec<String>,
    kinds: Vec<&'static str>,
}

impl Run {
    async fn all(&mut self, script: &[Op]) -> Verdict {
        let mut since = Instant::now();
        let mut has_told = false;
        for op in script {
            if let Op::Wait = op {
                tokio::time::sleep(WAIT).await;
                since = Instant::now();
                let _ = writeln!(self.text, "(wait {WAIT:?})");
                continue;
            }
            // What a request changes must not race with what is still under way.
            if has_told
                && !matches!(op, Op::Range(_) | Op::TimeToLive { .. } | Op::Put(_))
                && !self.settle().await
            {
                return self.difference();
            }
            has_told |= matches!(op, Op::Watch(_) | Op::Lock { .. });
            let key = self.held();
            let heard = (self.live.told().len(), self.simulated.told().len());
            let mut live = self.live.carry_out(op, key.as_deref()).await;
            let mut simulated = self.simulated.carry_out(op, key.as_deref()).await;
            if let Op::Lock { name, .. } = op {
                // One that waits where the other has answered may be slow: on a machine that is busy.
                match (live == WAITS, simulated == WAITS) {
                    (true, false) => live = self.live.late_answer(name, heard.0, TIMEOUT).await,
                    (false, true) => simulated = self.simulated.late_answer(name, heard.1, TIMEOUT).await,
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
        if has_told && !self.settle().await {
            return self.difference();
        }
        self.note_told();
        Verdict::Same
    }

    /// Waits until nothing more comes unasked. Whether both servers have then told the same.
    async fn settle(&self) -> bool {
        let begun = Instant::now();
        let (mut count, mut since) = (0, Instant::now());
        loop {
            let (live, simulated) = (self.live.told(), self.simulated.told());
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
        let (live, simulated) = (self.live.told(), self.simulated.told());
        let _ = writeln!(self.text, "told unasked\n  live:      {live:#?}\n  simulated: {simulated:#?}");
        Verdict::Different(std::mem::take(&mut self.text))
    }

    /// The key of the lock that was granted first and not given back.
    fn held(&self) -> Option<String> {
        let at_once = self.text.lines().map(str::trim).filter(|line| is_lock_key(line)).map(str::to_owned);
        let told = self.live.told().into_iter().map(|(_, text)| text).filter(|text| is_lock_key(text));
        at_once.chain(told).find(|key| !self.given_back.contains(key))
    }

    fn note(&mut self, op: &Op, answer: &str, key: Option<String>) {
        if answer == WAITS || answer.starts_with('(') {
            return;
        }
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
            self.given_back.extend(key);
        }
    }

    fn note_told(&mut self) {
        for (who, text) in self.live.told() {
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

/// A lock's key: its name, and the lease in hexadecimal digits.
fn is_lock_key(text: &str) -> bool {
    let lease = text.strip_prefix("lock/").or_else(|| text.strip_prefix("other/"));
    lease.is_some_and(|lease| !lease.is_empty() && lease.chars().all(|digit| digit.is_ascii_hexdigit()))
}
