//! `stuck`: liveness. Once every fault has healed, waiters must be served and locks must come free.
//!
//! Judged only if [`Rules::healed_at`] is given: while a fault lasts, waiting is no wrong. Two things are stuck:
//!
//! - a request (`lease_requested`, and `lease_retried` as far as it goes on) that ended, in `lease_acquired` or `lease_not_acquired`, later than
//!   [`Rules::served_within`] after it began or the faults healed, whichever was later; or that had not ended then. A
//!   process that crashes stops waiting.
//! - a key that, at the end of the history, a server still holds (`key_granted`, or the last `key_extended`) for longer
//!   than its time to live and [`Rules::grace`]. A key stored without one is held against [`Rules::ttl`]. A server that
//!   stops takes its keys out of the question: whether they come back depends on its disk, which the history does not
//!   tell. Live runs have no server events; only waiters are judged there.
//!
//! Source: the liveness phase of TigerBeetle's simulator, `src/vopr.zig`: heal, then require progress within a bound.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Rules;
use super::history::{Event, Nanos};
use super::verdict::{VerdictKind, Verdicts};
use crate::vocabulary::{Kind, Name};

pub(super) struct Stuck<'h> {
    rules: Rules,
    healed_at: Nanos,
    /// When each request that waits began, by key, owner and process.
    waiting: BTreeMap<(&'h Name, &'h Name, &'h Name), Nanos>,
    /// The request that each process gave up last, and since when it had waited: it may go on under another owner.
    given_up: BTreeMap<&'h Name, (&'h Name, Nanos)>,
    /// By server and key.
    held: BTreeMap<(&'h Name, &'h Name), Lease<'h>>,
}

struct Lease<'h> {
    owner: &'h Name,
    client: &'h Name,
    since: Nanos,
    ttl_millis: Option<u64>,
}

impl<'h> Stuck<'h> {
    /// `None` if the rules don't say that the faults healed.
    pub(super) fn new(rules: &Rules) -> Option<Self> {
        let healed_at = rules.healed_at?;
        Some(Self {
            rules: rules.clone(),
            healed_at,
            waiting: BTreeMap::new(),
            given_up: BTreeMap::new(),
            held: BTreeMap::new(),
        })
    }

    pub(super) fn observe(&mut self, event: &'h Event, verdicts: &mut Verdicts) {
        let (at, process) = (event.at, &event.process);
        match &event.kind {
            Kind::LeaseRequested { key, owner, .. } => {
                self.waiting.insert((key, owner, process), at);
            }
            Kind::LeaseRetried { key, owner, .. } => {
                let former = self.given_up.remove(process).filter(|(former, _)| *former == key);
                self.waiting.insert((key, owner, process), former.map_or(at, |(_, since)| since));
            }
            Kind::LeaseAcquired { key, owner, .. } | Kind::LeaseNotAcquired { key, owner, .. } => {
                if let Some(since) = self.waiting.remove(&(key, owner, process)) {
                    self.judge_waiter(key, process, since, at, verdicts);
                    self.given_up.insert(process, (key, since));
                }
            }
            Kind::ProcessCrashed { .. } => {
                self.waiting.retain(|(_, _, waiter), _| *waiter != process);
                self.held.retain(|(server, _), _| *server != process);
            }
            Kind::KeyGranted { key, owner, ttl_millis, client, .. }
            | Kind::KeyExtended { key, owner, ttl_millis, client } => {
                let lease = Lease { owner, client, since: at, ttl_millis: *ttl_millis };
                self.held.insert((process, key), lease);
            }
            Kind::KeyDeleted { key, .. } | Kind::KeyExpired { key, .. } => {
                self.held.remove(&(process, key));
            }
            Kind::ServerStopped { .. } => self.held.retain(|(server, _), _| *server != process),
            _ => {}
        }
    }

    /// Judges what still waits and what is still held at `end`.
    pub(super) fn finish(self, end: Nanos, verdicts: &mut Verdicts) {
        for ((key, _, process), since) in &self.waiting {
            self.judge_waiter(key, process, *since, end, verdicts);
        }
        for ((server, key), lease) in &self.held {
            self.judge_key(key, server, lease, end, verdicts);
        }
    }

    fn judge_waiter(&self, key: &Name, process: &Name, since: Nanos, until: Nanos, verdicts: &mut Verdicts) {
        let Some(bound) = self.rules.served_within else { return };
        let due = since.max(self.healed_at).after(bound);
        if until <= due {
            return;
        }
        let detail = format!(
            "{process} asked for the lock at {since} and had no answer by {due}, {} s after {}",
            bound.as_secs_f64(),
            if since < self.healed_at { "the last fault healed" } else { "it asked" },
        );
        verdicts.convict(VerdictKind::Stuck, due, key, &[process], detail);
    }

    fn judge_key(&self, key: &Name, server: &Name, lease: &Lease<'_>, end: Nanos, verdicts: &mut Verdicts) {
        let Some(ttl) = lease.ttl_millis.map(Duration::from_millis).or(self.rules.ttl) else { return };
        let over = lease.since.after(ttl);
        let due = over.max(self.healed_at).after(self.rules.grace);
        if end <= due {
            return;
        }
        let endless = if lease.ttl_millis.is_none() { " without a time to live" } else { "" };
        let detail = format!(
            "{server} still held the lock of {} (owner {}) at {end}: it was stored at {}{endless} and had to end by {over}",
            lease.client, lease.owner, lease.since,
        );
        verdicts.convict(VerdictKind::Stuck, due, key, &[lease.client, server], detail);
    }
}
