//! `unfair` and `crowded` from the events of clients alone, where the token of a grant is its place in the
//! queue (etcd, ZooKeeper).
//!
//! There a place is one entry on the server, and places grow in the order of arrival. So the events of a
//! client prove when its entry existed: from its arrival, of which the client knows only later
//! (`lease_queued`, `lease_acquired`), at least until the client began to release
//! (`lease_release_requested`), if the release then deleted that entry (`lease_released`, `done`). An event
//! is recorded after the answer and before the request that it is about; all times are of one clock. A pause,
//! a lost session or a slow answer only proves less.
//!
//! - `unfair`: a client reported its grant while an entry at an earlier place existed that nobody had
//!   reported as granted.
//! - `crowded`: more entries than may were behind another one at once. An entry counts from `lease_queued`
//!   on, and until the last holder before it began to release: only if its client was granted that same
//!   place.
//!
//! A server that stops or is promoted may have lost its entries: only requests that begin later are judged.
//! On a single Redis a waiter that asks too late loses its place, and may get the same number again. Nothing
//! in the events of clients shows that.
//!
//! Source: as for `unfair` and `crowded` from the events of servers.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::capacity::Capacity;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

#[derive(Default)]
pub(super) struct Queues<'h> {
    /// The number of the next event.
    next: usize,
    /// The requests that began since a server stopped, by key and owner.
    requests: BTreeMap<(&'h Name, &'h Name), Request<'h>>,
    /// The most that may wait for a key.
    limits: BTreeMap<&'h Name, u64>,
    stopped: BTreeSet<&'h Name>,
}

/// A request, as the events of its client show it.
struct Request<'h> {
    process: &'h Name,
    /// The last place that it reported while it waited.
    queued: Option<Report>,
    /// The token of its grant.
    acquired: Option<Report>,
    release_began: Option<Nanos>,
    /// The time at which a release began that deleted the entry.
    released: Option<Nanos>,
}

/// A place, and the event that reported it.
#[derive(Clone, Copy)]
struct Report {
    place: u64,
    at: Nanos,
    event: usize,
}

/// An entry that was granted.
struct Entry<'h> {
    process: &'h Name,
    queued: Option<Report>,
    acquired: Report,
    released: Option<Nanos>,
}

impl<'h> Judge<'h> for Queues<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        (rules.tokens_are_places && rules.servers.is_empty()).then(Self::default)
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let report = |place| Some(Report { place, at: event.at, event: self.next });
        match &event.kind {
            Kind::LeaseRequested { key, owner, .. } | Kind::LeaseRetried { key, owner, .. }
                if self.stopped.is_empty() =>
            {
                self.requests.insert((key, owner), Request::of(&event.process));
            }
            Kind::LeaseBounded { key, waiters_max, .. } => {
                let limit = self.limits.entry(key).or_default();
                *limit = (*limit).max(*waiters_max);
            }
            Kind::LeaseQueued { key, owner, position, .. } => {
                let queued = report(*position);
                self.change(key, owner, |request| request.queued = queued);
            }
            Kind::LeaseAcquired { key, owner, token, .. } => {
                let acquired = report(*token);
                self.change(key, owner, |request| request.acquired = acquired);
            }
            Kind::LeaseReleaseRequested { key, owner, .. } => {
                self.change(key, owner, |request| request.release_began = Some(event.at));
            }
            Kind::LeaseReleased { key, owner, outcome, .. }
                if outcome.as_ref().is_some_and(|outcome| outcome.as_str() == "done") =>
            {
                self.change(key, owner, |request| request.released = request.release_began);
            }
            Kind::ServerStopped { .. } | Kind::ServerPromoted { .. } => {
                self.judge(state, verdicts);
                if matches!(event.kind, Kind::ServerStopped { .. }) {
                    self.stopped.insert(&event.process);
                }
            }
            Kind::ServerStarted { .. } => _ = self.stopped.remove(&event.process),
            _ => {}
        }
        self.next += 1;
    }

    fn finish(&mut self, _: Nanos, state: &State<'h>, verdicts: &mut Verdicts) {
        self.judge(state, verdicts);
    }
}

impl<'h> Queues<'h> {
    fn change(&mut self, key: &'h Name, owner: &'h Name, change: impl FnOnce(&mut Request<'h>)) {
        if let Some(request) = self.requests.get_mut(&(key, owner)) {
            change(request);
        }
    }

    /// Judges the requests so far, and forgets them.
    fn judge(&mut self, state: &State<'h>, verdicts: &mut Verdicts) {
        let mut by_key: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for ((key, _), request) in std::mem::take(&mut self.requests) {
            if state.capacities.of_key(key) == Capacity::Mutex {
                by_key.entry(key).or_default().extend(request.entry());
            }
        }
        for (key, mut entries) in by_key {
            judge_order(key, &mut entries, verdicts);
            if let Some(max) = self.limits.get(key) {
                judge_number(key, &mut entries, *max, verdicts);
            }
        }
    }
}

impl<'h> Request<'h> {
    const fn of(process: &'h Name) -> Self {
        Self { process, queued: None, acquired: None, release_began: None, released: None }
    }

    /// Returns the entry that was granted, if one was. A place that the request had before is another entry.
    fn entry(self) -> Option<Entry<'h>> {
        let Self { process, queued, acquired, released, .. } = self;
        let acquired = acquired?;
        let queued = queued.filter(|queued| queued.place == acquired.place);
        Some(Entry { process, queued, acquired, released })
    }
}

/// Convicts grants that were reported before those of earlier places, whose entries existed until later.
fn judge_order<'h>(key: &Name, entries: &mut [Entry<'h>], verdicts: &mut Verdicts) {
    entries.sort_by_key(|entry| entry.acquired.at);
    // The entry at the lowest place among those that were granted later.
    let mut first: Option<&Entry<'h>> = None;
    for simultaneous in entries.chunk_by(|one, other| one.acquired.at == other.acquired.at).rev() {
        for served in simultaneous {
            let Some(waiter) = first.filter(|waiter| waiter.acquired.place < served.acquired.place) else {
                continue;
            };
            let Report { place, at, event } = served.acquired;
            let detail = format!(
                "{} (place {place}) was given the lock at {at}, while {} (place {}) was waiting, which was given \
                 it at {}",
                served.process, waiter.process, waiter.acquired.place, waiter.acquired.at,
            );
            verdicts.judge(event);
            verdicts.convict(VerdictKind::Unfair, at, key, &[served.process, waiter.process], detail);
        }
        let proven = simultaneous.iter().filter(|entry| entry.released.is_some());
        first = proven.chain(first).min_by_key(|entry| entry.acquired.place);
    }
}

/// Convicts the entries with which more than `max` waited.
fn judge_number<'h>(key: &Name, entries: &mut [Entry<'h>], max: u64, verdicts: &mut Verdicts) {
    entries.sort_by_key(|entry| entry.acquired.place);
    let mut until = None;
    let mut waits = Vec::new();
    for entry in &*entries {
        if let (Some(queued), Some(until)) = (entry.queued, until)
            && queued.at < until
        {
            waits.push((queued, until, entry.process));
        }
        until = until.max(entry.released);
    }
    waits.sort_by_key(|(queued, ..)| (queued.at, queued.event));
    // By the ends of their waits.
    let mut waiting: BTreeSet<(Nanos, usize, &Name)> = BTreeSet::new();
    for (queued, until, process) in waits {
        while waiting.first().is_some_and(|(until, ..)| *until <= queued.at) {
            waiting.pop_first();
        }
        let other = waiting.first().map_or(process, |(.., other)| *other);
        waiting.insert((until, queued.event, process));
        let number = waiting.len();
        if number as u64 > max {
            let Report { place, at, event } = queued;
            let detail = format!(
                "{process} (place {place}) waited for the lock at {at}, and with it {number} acquires did, where \
                 {max} may",
            );
            verdicts.judge(event);
            verdicts.convict(VerdictKind::Crowded, at, key, &[process, other], detail);
        }
    }
}
