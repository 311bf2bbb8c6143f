//! Events and probes, each in an abstract state of the locks.

use std::collections::{BTreeMap, BTreeSet};

use history::{Event, Kind, Name};

use super::{Features, label, mix};
use crate::sim::Report;

/// The state of a run according to its events.
#[derive(Default)]
struct State<'r> {
    locks: BTreeMap<&'r Name, Lock<'r>>,
    /// The processes whose clocks are off.
    clocks: BTreeSet<&'r Name>,
    /// The number of faults in force.
    faults: u64,
    crashed: bool,
}

/// A process that trusts a lease or did so last, with its owner token and the time at which its trust ends.
type Holder<'r> = (&'r Name, &'r Name, u64);

/// The state of one lock.
#[derive(Default)]
struct Lock<'r> {
    /// The processes that trust a lease, or trusted it last.
    holders: Vec<Holder<'r>>,
    /// The owner that each server stores.
    stored: BTreeMap<&'r Name, &'r Name>,
    waiting: BTreeSet<(&'r Name, &'r Name)>,
}

/// Adds a feature for each event in the state before it, and for each probe in the state at its time.
pub(super) fn describe(report: &Report, features: &mut Features) {
    let mut state = State::default();
    let mut hits = report.probes.log().peekable();
    for event in &report.events {
        while let Some(hit) = hits.next_if(|hit| hit.at < event.at.0) {
            let state = state.summary(None, None, hit.at);
            features.entry(mix(&[hit.probe, state])).or_insert(hit.at);
        }
        let summary = state.summary(Some(&event.process), event.kind.key(), event.at.0);
        features.entry(mix(&[label(&event.kind), summary])).or_insert(event.at.0);
        state.observe(event);
    }
    for hit in hits {
        let state = state.summary(None, None, hit.at);
        features.entry(mix(&[hit.probe, state])).or_insert(hit.at);
    }
}

impl<'r> State<'r> {
    fn observe(&mut self, event: &'r Event) {
        let process = &event.process;
        match &event.kind {
            Kind::FaultApplied { .. } => self.faults += 1,
            Kind::FaultHealed { .. } => self.faults = self.faults.saturating_sub(1),
            Kind::ClockRate { .. } => drop(self.clocks.insert(process)),
            Kind::ProcessCrashed { .. } => {
                self.crashed = true;
                for lock in self.locks.values_mut() {
                    lock.holders.retain(|(holder, ..)| *holder != process);
                    lock.waiting.retain(|(waiter, _)| *waiter != process);
                }
            }
            kind => {
                if let Some(key) = kind.key() {
                    self.locks.entry(key).or_default().observe(process, event);
                }
            }
        }
    }

    /// Returns the state as `process` sees it, of the lock `key` or of all locks together.
    fn summary(&self, process: Option<&Name>, key: Option<&Name>, at: u64) -> u64 {
        let lock = match key {
            Some(key) => self.locks.get(key).map_or(0, |lock| lock.summary(process, at)),
            // The largest summary does not depend on the order of the keys.
            None => self.locks.values().map(|lock| lock.summary(process, at)).max().unwrap_or(0),
        };
        let is_off = process.is_some_and(|process| self.clocks.contains(process));
        let clocks = u64::from(is_off) + 2 * u64::from(!self.clocks.is_empty());
        mix(&[lock, clocks, self.faults.min(2), u64::from(self.crashed)])
    }
}

impl<'r> Lock<'r> {
    fn observe(&mut self, process: &'r Name, event: &'r Event) {
        match &event.kind {
            Kind::LeaseRequested { owner, .. } | Kind::LeaseRetried { owner, .. } => {
                self.waiting.insert((process, owner));
            }
            Kind::LeaseNotAcquired { owner, .. } => drop(self.waiting.remove(&(process, owner))),
            Kind::LeaseAcquired { owner, valid_micros, .. }
            | Kind::LeaseRenewed { owner, valid_micros, .. }
            | Kind::LeaseTtlChanged { owner, valid_micros, .. } => {
                self.waiting.remove(&(process, owner));
                let until = event.at.0 + valid_micros.unwrap_or(u64::MAX / 4_000).saturating_mul(1_000);
                self.forget(process, owner);
                self.holders.push((process, owner, until));
            }
            Kind::SectionEntered { owner, .. }
                if !self.holders.iter().any(|(by, of, _)| *by == process && *of == owner) =>
            {
                self.holders.push((process, owner, u64::MAX));
            }
            Kind::LeaseLost { owner, .. }
            | Kind::LeaseReleaseRequested { owner, .. }
            | Kind::SectionLeft { owner, .. } => self.forget(process, owner),
            Kind::KeyGranted { owner, .. } | Kind::KeyExtended { owner, .. } => {
                self.stored.insert(process, owner);
            }
            Kind::KeyDeleted { .. } | Kind::KeyExpired { .. } => drop(self.stored.remove(process)),
            _ => {}
        }
    }

    fn forget(&mut self, process: &Name, owner: &Name) {
        self.holders.retain(|(by, of, _)| (*by, *of) != (process, owner));
    }

    /// Returns a number below 1024 for the state as `process` sees it.
    fn summary(&self, process: Option<&Name>, at: u64) -> u64 {
        let is_own = |by: &Name| process == Some(by);
        let believes = |until: u64| until > at;
        let own = self
            .holders
            .iter()
            .filter(|(by, ..)| is_own(by))
            .map(|(.., until)| 2 + u64::from(believes(*until)));
        let waits = u64::from(self.waiting.iter().any(|(by, _)| is_own(by)));
        let own = own.max().unwrap_or(waits);
        let others = self.holders.iter().filter(|(by, ..)| !is_own(by));
        let (valid, lapsed): (Vec<Holder<'_>>, Vec<Holder<'_>>) =
            others.copied().partition(|(.., until)| believes(*until));
        let trusted =
            |owner: &Name| self.holders.iter().any(|(_, of, until)| *of == owner && believes(*until));
        let held = self.stored.values().filter(|owner| trusted(owner)).count();
        let strange = self.stored.len() - held;
        let few = |count: usize| count.min(2) as u64;
        own + 4 * (few(valid.len()) + 3 * (few(lapsed.len()).min(1) + 2 * (few(held) + 3 * few(strange))))
    }
}
