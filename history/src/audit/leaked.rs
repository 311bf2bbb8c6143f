//! `leaked`: an acquisition has ended, its client lives, no fault has been in force for half a TTL, and its
//! key is still stored.
//!
//! An acquisition ends without a lease (`lease_not_acquired`) or with the release (`lease_released`). The
//! client must then delete any key stored for it. The TTL is no excuse: until it ends, no other client gets
//! the lock. A request may be in flight for long, so the time counts from when the key was stored. A client
//! retries the cleanup for one TTL until its key is gone; a key that is stored later ends by its own TTL, and
//! is no leak. A client that died can't clean up. If a fault had lasted until shortly before, the client may
//! need its longest retry delay ([`Rules::longest_retry`]) until it retries. A client that leaves its lock to
//! the TTL never ends its acquisition.
//!
//! A waiter in the queue of a server without sessions leaves a trace, too, if it gave up and its place was
//! removed (`waiter_gone`) as late: those behind it waited for a dead one.
//!
//! Source: issue 6864 of sim (simstudioai), where an answer that is lost is read as "not acquired".

use std::collections::BTreeMap;
use std::time::Duration;

use super::Rules;
use super::faults::Faults;
use super::judge::{Judge, State};
use super::stored::{Entry, Stored};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

pub(super) struct Leaked<'h> {
    ttl: Duration,
    longest_retry: Duration,
    /// True if a place in a queue ends with the client's session: its key counts once it has the lock.
    sessions: bool,
    acquisitions: BTreeMap<(&'h Name, &'h Name), Acquisition<'h>>,
}

/// One acquisition of a live client.
struct Acquisition<'h> {
    process: &'h Name,
    ttl_millis: Option<u64>,
    ended: Option<Nanos>,
    convicted: bool,
}

impl<'h> Judge<'h> for Leaked<'h> {
    fn of(rules: &Rules) -> Option<Self> {
        let longest_retry = rules.longest_retry?;
        let (ttl, sessions) = (rules.ttl.unwrap_or_default(), rules.sessions);
        Some(Self { ttl, longest_retry, sessions, acquisitions: BTreeMap::new() })
    }

    fn until(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        if state.faults.begins_fault(event) {
            self.judge_all(event.at, state, verdicts);
        }
    }

    fn observe(&mut self, event: &'h Event, state: &State<'h>, verdicts: &mut Verdicts) {
        let counts =
            |removed: &&Entry<'h>| state.stored.as_ref().is_some_and(|stored| stored.counts(removed.server));
        if let Some(removed) = state.removed.as_ref().filter(counts) {
            self.judge(event.at, removed, &state.faults, verdicts);
        }
        let process = &event.process;
        match &event.kind {
            Kind::LeaseRequested { key, owner, ttl_millis, .. }
            | Kind::LeaseRetried { key, owner, ttl_millis, .. } => {
                let new = Acquisition { process, ttl_millis: *ttl_millis, ended: None, convicted: false };
                self.acquisitions.insert((key, owner), new);
            }
            Kind::LeaseTtlChanged { key, owner, ttl_millis, .. } => {
                if let Some(acquisition) = self.acquisitions.get_mut(&(key, owner)) {
                    acquisition.ttl_millis = acquisition.ttl_millis.max(*ttl_millis);
                }
            }
            Kind::LeaseNotAcquired { key, owner, .. } | Kind::LeaseReleased { key, owner, .. } => {
                if let Some(acquisition) = self.acquisitions.get_mut(&(key, owner)) {
                    acquisition.ended = Some(event.at);
                }
            }
            Kind::WaiterGone { key, owner, .. } if !self.sessions => {
                let place = Entry { key, server: process, owner, since: Nanos(0) };
                self.judge(event.at, &place, &state.faults, verdicts);
            }
            Kind::ProcessCrashed { .. } => {
                self.acquisitions.retain(|_, acquisition| acquisition.process != process);
            }
            _ => {}
        }
    }

    fn finish(&mut self, end: Nanos, state: &State<'h>, verdicts: &mut Verdicts) {
        self.judge_all(end, state, verdicts);
    }
}

impl<'h> Leaked<'h> {
    /// Judges a key that was stored up to `at`.
    fn judge(&mut self, at: Nanos, held: &Entry<'h>, faults: &Faults<'h>, verdicts: &mut Verdicts) {
        let Some(since) = faults.retried_since(self.longest_retry) else { return };
        let owner = held.owner;
        let Some(acquisition) = self.acquisitions.get_mut(&(held.key, owner)) else { return };
        let Some(ended) = acquisition.ended.filter(|_| !acquisition.convicted) else { return };
        let ttl = acquisition.ttl_millis.map_or(self.ttl, Duration::from_millis);
        if held.since > ended.after(ttl) {
            return;
        }
        // A request that was in flight for long may store the key after the end.
        let due = since.max(ended).max(held.since).after(ttl / 2);
        if at <= due {
            return;
        }
        acquisition.convicted = true;
        let detail = format!(
            "{} still held the lock for {} (owner {owner}) at {due}, although that acquisition had ended at \
             {ended}",
            held.server, acquisition.process,
        );
        verdicts.convict_absence(
            VerdictKind::Leaked,
            due,
            held.key,
            &[acquisition.process, held.server],
            detail,
        );
    }

    /// Judges all keys stored at `at`: before a fault begins, and at the end.
    fn judge_all(&mut self, at: Nanos, state: &State<'h>, verdicts: &mut Verdicts) {
        for held in state.stored.iter().flat_map(Stored::entries) {
            self.judge(at, &held, &state.faults, verdicts);
        }
    }
}
