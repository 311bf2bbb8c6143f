//! The beliefs of holders: the true time until which each may trust its lease.
//!
//! The events `lease_acquired` and `lease_renewed` say for how long the client may trust the lease from then
//! on, by its own clock (`valid_micros`). The belief ends when that time has passed, at the rate of the
//! process's clock (`clock_rate`; without one, it runs true). It ends earlier when the client learns that the
//! lease is lost (`lease_lost`), begins to release it (`lease_release_requested`), or dies. A pause does not
//! end it: the clock of a paused process runs on.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::events::{Event, Nanos};
use crate::time::Span;
use crate::vocabulary::{Kind, Name, TRUE_RATE};

/// The leases that holders trust, as far as a history has been observed.
#[derive(Default)]
pub struct Beliefs<'h> {
    /// The rates of clocks that don't run true, by process.
    rates: BTreeMap<&'h Name, u64>,
    by_key: BTreeMap<&'h Name, Vec<Belief<'h>>>,
}

/// A lease that its holder trusts.
#[derive(Clone, Copy)]
pub struct Belief<'h> {
    /// Its holder.
    pub by: Acquisition<'h>,
    /// The fencing token of its grant.
    pub token: u64,
    /// The true time at which its validity ends.
    pub until: Nanos,
}

/// A process and an owner: two tasks that share one owner token by mistake are two holders.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Acquisition<'h> {
    /// The process.
    pub process: &'h Name,
    /// The owner.
    pub owner: &'h Name,
}

impl<'h> Beliefs<'h> {
    /// Takes the next event of the history. Returns the key and the belief, if `event` began or
    /// prolonged one.
    pub fn observe(&mut self, event: &'h Event) -> Option<(&'h Name, Belief<'h>)> {
        let process = &event.process;
        match &event.kind {
            Kind::LeaseAcquired { key, owner, token, valid_micros: Some(valid), .. }
            | Kind::LeaseRenewed { key, owner, token, valid_micros: Some(valid), .. }
            | Kind::LeaseTtlChanged { key, owner, token, valid_micros: Some(valid), .. } => {
                let until = event.at.after(self.true_time(process, Duration::from_micros(*valid)));
                let by = Acquisition { process, owner };
                // Only another TTL shortens the trust.
                if matches!(event.kind, Kind::LeaseTtlChanged { .. }) {
                    self.by_key.entry(key).or_default().retain(|belief| belief.by != by);
                }
                return Some((key, self.hold(key, event.at, Belief { by, token: *token, until })));
            }
            Kind::LeaseLost { key, owner, .. } | Kind::LeaseReleaseRequested { key, owner, .. } => {
                let by = Acquisition { process, owner };
                if let Some(beliefs) = self.by_key.get_mut(key) {
                    beliefs.retain(|belief| belief.by != by);
                }
            }
            Kind::ProcessCrashed { .. } => {
                self.rates.remove(process);
                for beliefs in self.by_key.values_mut() {
                    beliefs.retain(|belief| belief.by.process != process);
                }
            }
            Kind::ClockRate { rate } => self.set_rate(process, event.at, *rate),
            _ => {}
        }
        None
    }

    /// Returns all leases that no event has ended, with their keys. Of some, the validity may be over.
    pub fn all(&self) -> impl Iterator<Item = (&'h Name, &Belief<'h>)> {
        self.by_key.iter().flat_map(|(key, beliefs)| beliefs.iter().map(|belief| (*key, belief)))
    }

    /// Converts a duration on the process's clock to true time, at the clock's present rate.
    pub fn true_time(&self, process: &Name, local: Duration) -> Duration {
        let rate = self.rates.get(process).copied().unwrap_or(TRUE_RATE);
        let local = Span(local).as_nanos();
        Duration::from_nanos(scale(local, TRUE_RATE, rate))
    }

    /// Returns the leases on `key` that are trusted right after `at`.
    pub(super) fn valid(&self, key: &Name, at: Nanos) -> impl Iterator<Item = &Belief<'h>> {
        self.by_key.get(key).into_iter().flatten().filter(move |belief| belief.until > at)
    }

    /// Returns the keys on which some lease may be trusted.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'h Name> {
        self.by_key.keys().copied()
    }

    fn hold(&mut self, key: &'h Name, at: Nanos, mut new: Belief<'h>) -> Belief<'h> {
        let beliefs = self.by_key.entry(key).or_default();
        // A renewal never shortens the time for which the lease is trusted already.
        if let Some(old) = beliefs.iter().find(|old| old.by == new.by) {
            new.until = new.until.max(old.until);
        }
        beliefs.retain(|old| old.by != new.by && old.until > at);
        beliefs.push(new);
        new
    }

    /// Converts the rest of the process's beliefs to a new rate of its clock, from `at` on.
    fn set_rate(&mut self, process: &'h Name, at: Nanos, rate: u64) {
        let former = self.rates.insert(process, rate.max(1)).unwrap_or(TRUE_RATE);
        let beliefs = self.by_key.values_mut().flatten();
        for belief in beliefs.filter(|belief| belief.by.process == process && belief.until > at) {
            let left = belief.until.0 - at.0;
            belief.until = Nanos(at.0.saturating_add(scale(left, former, rate.max(1))));
        }
    }
}

fn scale(nanos: u64, times: u64, over: u64) -> u64 {
    u64::try_from(u128::from(nanos) * u128::from(times) / u128::from(over)).unwrap_or(u64::MAX)
}
