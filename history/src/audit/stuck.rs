//! `stuck`: liveness. Once every fault has healed, waiters must be served and locks must come free.
//!
//! Judged only if [`Rules::healed_at`] is given: while a fault lasts, waiting is allowed. Two things are
//! stuck:
//!
//! - a request that still waits [`Rules::served_within`] after it began, after the faults healed, and after
//!   the last blocking lease had to be over, whichever was last. A lease has to be over once its requested
//!   TTL (`lease_requested`) has passed since its last grant or extension, once it is released, or once its
//!   key is gone. With [`Rules::sessions`] it lasts as long as its holder lives. A lock need not be fair: a
//!   request that others overtake is not stuck while they get the lock. A request continues through
//!   `lease_retried`, and ends with its process. A writer need not wait for readers that were let in when it
//!   had waited for this long already ([`starved`](super::starved)).
//!   An extension (`key_extended`) counts only while somebody may want it: not once its owner's belief in the
//!   lease has been over for a TTL, and all faults with it. The belief ends with `lease_lost`,
//!   `lease_not_acquired`, `lease_released` or the holder's death, and when its validity has passed
//!   (`valid_micros` of the last `lease_acquired` or `lease_renewed`). Otherwise a renewal that outlives its
//!   holder would keep all others waiting for ever. With [`Rules::sessions`], where a client's session renews
//!   whatever it has stored, all extensions count.
//! - a key that, at the end of the history, a server still holds (`key_granted`, or the last `key_extended`)
//!   for longer than the requested TTL and [`Rules::grace`]. For a key without a known request, the TTL that
//!   it was stored with counts, or else [`Rules::ttl`]. The keys of a server that stops are not judged:
//!   whether they come back depends on its disk, which is not in the history. Live runs have no server
//!   events; only waiters are judged there.
//!
//! Processes that stay broken for good ([`Rules::outside`]) owe nothing from [`Rules::healed_at`] on: they
//! need not be served, and keys may stay on their servers. A holder among them counts as dead, so that its
//! lease has to be over one TTL later, and the others must then be served.
//!
//! With [`Rules::sessions`] the TTL begins again with each fault: a cluster that elects a leader gives every
//! session its full TTL again.
//!
//! Source: the liveness phase of TigerBeetle's simulator, `src/vopr.zig`: heal, then require progress within
//! a limit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ends::Ends;
use super::judge::{Judge, State};
use super::starved::Starved;
use super::trust::Trust;
use super::verdict::{VerdictKind, Verdicts};
use super::{Capacity, Rules};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

pub(super) struct Stuck<'h> {
    rules: Rules,
    healed_at: Nanos,
    /// The time at which the last fault began or ended.
    disturbed: Nanos,
    /// True once the processes in [`Rules::outside`] have been left behind.
    is_core: bool,
    locks: BTreeMap<&'h Name, Lock<'h>>,
    /// The request that each process gave up last, and the time since which it had waited: it may continue
    /// under another owner.
    given_up: BTreeMap<&'h Name, (&'h Name, Nanos)>,
    /// The stored keys, by server, key, and the owner unless the key is that of a mutex.
    held: BTreeMap<(&'h Name, &'h Name, Option<&'h Name>), Lease<'h>>,
    trust: Trust<'h>,
}

/// One lock, as its waiters see it.
struct Lock<'h> {
    /// The start of each waiting request, by owner and process.
    waiting: BTreeMap<(&'h Name, &'h Name), Nanos>,
    /// The TTL that each owner requested.
    ttls: BTreeMap<&'h Name, Duration>,
    ends: Ends<'h>,
    starved: Starved<'h>,
    /// The live holders: owner and process.
    holders: BTreeSet<(&'h Name, &'h Name)>,
}

/// A key on a server.
struct Lease<'h> {
    owner: &'h Name,
    client: &'h Name,
    since: Nanos,
    ttl: Option<Duration>,
    is_endless: bool,
}

impl<'h> Judge<'h> for Stuck<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        let healed_at = rules.healed_at?;
        Some(Self {
            rules: rules.clone(),
            healed_at,
            disturbed: Nanos(0),
            is_core: false,
            locks: BTreeMap::new(),
            given_up: BTreeMap::new(),
            held: BTreeMap::new(),
            trust: Trust::default(),
        })
    }

    fn observe(&mut self, event: &'h Event, _: &State<'h>, verdicts: &mut Verdicts) {
        let (at, process) = (event.at, &event.process);
        self.leave_outside(at);
        self.trust.observe(event);
        if matches!(
            event.kind,
            Kind::FaultApplied { .. } | Kind::FaultHealed { .. } | Kind::ProcessCrashed { .. }
        ) {
            self.disturb(at);
        }
        match &event.kind {
            // It owes nothing. What its servers do with its keys still counts.
            Kind::LeaseRequested { .. } | Kind::LeaseRetried { .. } | Kind::LeaseAcquired { .. }
                if self.is_outside(process) => {}
            Kind::LeaseRequested { key, owner, ttl_millis, .. } => {
                self.wait(key, owner, process, at, *ttl_millis);
            }
            Kind::LeaseShared { key, owner, .. } => self.lock(key).starved.reads(owner),
            Kind::LeaseRetried { key, owner, ttl_millis, .. } => {
                let former = self.given_up.remove(process).filter(|(former, _)| *former == key);
                self.wait(key, owner, process, former.map_or(at, |(_, since)| since), *ttl_millis);
            }
            Kind::LeaseNotAcquired { key, owner, .. } => self.end_wait(key, owner, process, at, verdicts),
            Kind::LeaseAcquired { key, owner, .. } => {
                self.end_wait(key, owner, process, at, verdicts);
                if self.grant(key, owner, at, verdicts) {
                    self.lock(key).holders.insert((owner, process));
                }
            }
            Kind::LeaseRenewed { key, owner, .. } => _ = self.grant(key, owner, at, verdicts),
            Kind::LeaseTtlChanged { key, owner, ttl_millis, .. } => {
                // The longest counts: a renewal without an answer may or may not have taken effect.
                let ttl = self.lock(key).ttls.entry(owner).or_default();
                *ttl = ttl_millis.map(Duration::from_millis).unwrap_or_default().max(*ttl);
            }
            Kind::LeaseReleased { key, owner, outcome, .. } => {
                let is_over = outcome.as_ref().is_some_and(|outcome| outcome.as_str() == "done");
                self.leave(key, owner, at, is_over);
            }
            Kind::ProcessCrashed { .. } => self.crash(process, at),
            Kind::ServerStopped { .. } => self.held.retain(|(server, ..), _| *server != process),
            _ => self.observe_server(event, verdicts),
        }
    }

    /// Judges the requests that still wait and the keys that are still stored at `end`.
    fn finish(&mut self, end: Nanos, _: &State<'h>, verdicts: &mut Verdicts) {
        let keys: Vec<_> = self.locks.keys().copied().collect();
        for key in keys {
            self.judge_waiters(key, end, verdicts);
        }
        for ((server, key, _), lease) in &self.held {
            if self.is_outside(server) {
                continue;
            }
            self.judge_key(key, server, lease, end, verdicts);
        }
    }
}

impl<'h> Stuck<'h> {
    fn observe_server(&mut self, event: &'h Event, verdicts: &mut Verdicts) {
        let (at, process) = (event.at, &event.process);
        match &event.kind {
            Kind::KeyGranted { key, owner, ttl_millis, client, .. }
            | Kind::KeyExtended { key, owner, ttl_millis, client } => {
                if matches!(event.kind, Kind::KeyExtended { .. }) && self.is_unwanted(key, owner, at) {
                    return;
                }
                if !self.is_partial(key, owner) {
                    let _ = self.grant(key, owner, at, verdicts);
                }
                let stored = ttl_millis.map(Duration::from_millis);
                let asked = self.lock(key).ttls.get(owner).copied();
                let ttl = asked.or(stored).or(self.rules.ttl);
                let lease = Lease { owner, client, since: at, ttl, is_endless: stored.is_none() };
                self.held.insert((process, key, self.slot(key, Some(owner))), lease);
            }
            Kind::KeyDeleted { key, owner, .. } | Kind::KeyExpired { key, owner: Some(owner) } => {
                self.held.remove(&(process, key, self.slot(key, Some(owner))));
                self.leave(key, owner, at, true);
            }
            Kind::KeyExpired { key, owner: None } => {
                self.held.remove(&(process, key, None));
            }
            _ => {}
        }
    }

    /// Returns the owner if the key may be stored for several.
    fn slot(&self, key: &Name, owner: Option<&'h Name>) -> Option<&'h Name> {
        owner.filter(|_| self.capacity(key) != Capacity::Mutex)
    }

    fn capacity(&self, key: &Name) -> Capacity {
        self.rules.capacities.get(key).copied().unwrap_or_default()
    }

    /// Lets the processes outside the core die, for the judge, when the core phase has begun.
    fn leave_outside(&mut self, at: Nanos) {
        if self.is_core || self.rules.outside.is_empty() || at < self.healed_at {
            return;
        }
        self.is_core = true;
        let (healed, outside) = (self.healed_at, std::mem::take(&mut self.rules.outside));
        for process in &outside {
            self.crash(process, healed);
        }
        self.rules.outside = outside;
    }

    fn is_outside(&self, process: &Name) -> bool {
        self.is_core && self.rules.outside.contains(process)
    }

    /// Returns whether a key on one of several servers is part of a request that still waits. In a core phase
    /// it takes no time of the waiters': a lock that never gets enough of the servers would never be judged.
    fn is_partial(&mut self, key: &'h Name, owner: &'h Name) -> bool {
        self.is_core
            && self.rules.servers.len() > 1
            && self.lock(key).waiting.keys().any(|(waiting, _)| *waiting == owner)
    }

    /// Returns true if the owner's belief in the lease, and every fault, has been over for a TTL.
    fn is_unwanted(&mut self, key: &'h Name, owner: &'h Name, at: Nanos) -> bool {
        let Some(ended) = self.trust.ended(key, owner).filter(|_| !self.rules.sessions) else {
            return false;
        };
        let ttl = self.lock(key).ttls.get(owner).copied().or(self.rules.ttl).unwrap_or_default();
        at > ended.max(self.healed_at).max(self.disturbed).after(ttl)
    }

    /// Restarts the TTL of each session that is not over.
    fn disturb(&mut self, at: Nanos) {
        self.disturbed = at;
        if !self.rules.sessions {
            return;
        }
        for lock in self.locks.values_mut() {
            lock.ends.restart(at, &lock.ttls);
        }
    }

    fn lock(&mut self, key: &'h Name) -> &mut Lock<'h> {
        let capacity = self.capacity(key);
        self.locks.entry(key).or_insert_with(|| Lock {
            waiting: BTreeMap::new(),
            ttls: BTreeMap::new(),
            ends: Ends::of(capacity),
            starved: Starved::default(),
            holders: BTreeSet::new(),
        })
    }

    fn wait(
        &mut self,
        key: &'h Name,
        owner: &'h Name,
        process: &'h Name,
        since: Nanos,
        ttl_millis: Option<u64>,
    ) {
        let lock = self.lock(key);
        lock.waiting.insert((owner, process), since);
        if let Some(millis) = ttl_millis {
            lock.ttls.insert(owner, Duration::from_millis(millis));
        }
    }

    fn end_wait(
        &mut self,
        key: &'h Name,
        owner: &'h Name,
        process: &'h Name,
        at: Nanos,
        verdicts: &mut Verdicts,
    ) {
        self.judge_waiters(key, at, verdicts);
        if let Some(since) = self.lock(key).waiting.remove(&(owner, process)) {
            self.given_up.insert(process, (key, since));
        }
    }

    /// Notes a grant to `owner`: for the waiters, the time of its lease begins. Returns false if they need
    /// not wait for it, since it starves one of them.
    fn grant(&mut self, key: &'h Name, owner: &'h Name, at: Nanos, verdicts: &mut Verdicts) -> bool {
        self.judge_waiters(key, at, verdicts);
        let Rules { ttl, served_within, longest_retry, sessions, .. } = self.rules;
        let patience = served_within.filter(|_| !sessions).unwrap_or(Duration::MAX);
        let patience = (self.healed_at, patience.saturating_add(longest_retry.unwrap_or_default()));
        let lock = self.lock(key);
        if lock.starved.starves(owner, at, &lock.ends, &lock.waiting, patience) {
            return false;
        }
        let over = at.after(lock.ttls.get(owner).copied().or(ttl).unwrap_or_default());
        lock.starved.grant(owner, over);
        lock.ends.grant(owner, over);
        true
    }

    /// Notes that the owner no longer has the lock; `is_over` is true if its lease is over, too.
    fn leave(&mut self, key: &'h Name, owner: &'h Name, at: Nanos, is_over: bool) {
        let sessions = self.rules.sessions;
        let lock = self.lock(key);
        if is_over {
            lock.ends.end(owner, at, sessions);
            lock.starved.end(owner, at);
        }
        lock.holders.retain(|(holder, _)| *holder != owner);
    }

    fn crash(&mut self, process: &Name, at: Nanos) {
        self.held.retain(|(server, ..), _| *server != process);
        for lock in self.locks.values_mut() {
            lock.waiting.retain(|(_, waiter), _| *waiter != process);
            let (held, others): (BTreeSet<_>, _) =
                lock.holders.iter().partition(|(_, holder)| *holder == process);
            lock.holders = others;
            // The holder's session ends one TTL after the holder.
            for (owner, _) in held.into_iter().rev() {
                lock.ends.orphan(owner, at.after(lock.ttls.get(owner).copied().unwrap_or_default()));
            }
        }
    }

    /// Judges the waiters of `key` up to `until`, each at most once.
    fn judge_waiters(&mut self, key: &'h Name, until: Nanos, verdicts: &mut Verdicts) {
        let (Some(bound), healed, sessions) = (self.rules.served_within, self.healed_at, self.rules.sessions)
        else {
            return;
        };
        let is_core = self.is_core;
        let lock = self.lock(key);
        if sessions && lock.holders.len() >= lock.ends.capacity() {
            // While its holder lives, the lock is taken: the wait so far does not count.
            lock.ends.last_until(until);
            return;
        }
        let free = lock.ends.free();
        lock.waiting.retain(|(_, process), since| {
            let start = healed.max(free).max(*since);
            let due = start.after(bound);
            if until > due {
                convict_waiter(key, process, *since, (start, due), (healed, bound, is_core), verdicts);
            }
            until <= due
        });
    }

    fn judge_key(&self, key: &Name, server: &Name, lease: &Lease<'_>, end: Nanos, verdicts: &mut Verdicts) {
        let Some(ttl) = lease.ttl else { return };
        let since = if self.rules.sessions { lease.since.max(self.disturbed) } else { lease.since };
        let over = since.after(ttl);
        let due = over.max(self.healed_at).after(self.rules.grace);
        if end <= due {
            return;
        }
        let endless = if lease.is_endless { " without a time to live" } else { "" };
        let detail = format!(
            "{server} still held the lock of {} (owner {}) at {end}: it was stored at {}{endless} and had to \
             end by {over}",
            lease.client, lease.owner, lease.since,
        );
        verdicts.convict_absence(VerdictKind::Stuck, due, key, &[lease.client, server], detail);
    }
}

fn convict_waiter(
    key: &Name,
    process: &Name,
    since: Nanos,
    (start, due): (Nanos, Nanos),
    (healed, bound, is_core): (Nanos, Duration, bool),
    verdicts: &mut Verdicts,
) {
    let after = match start {
        _ if start == since => "it asked",
        _ if start == healed && is_core => "the core healed",
        _ if start == healed => "the last fault healed",
        _ => "the last lease had to be over",
    };
    let core = if is_core { ": the core was not served" } else { "" };
    let detail = format!(
        "{process} asked for the lock at {since} and had no answer by {due}, {} s after {after}{core}",
        bound.as_secs_f64(),
    );
    verdicts.convict_absence(VerdictKind::Stuck, due, key, &[process], detail);
}
