//! Novelty: the runs that have reached something that no earlier run of the search has.
//!
//! A run is described by features, each with the time at which the run first had it. A feature is the hash of
//! the names of events and probes and of an abstract state. It has no name of a process, key or owner:
//! workers that change places have the same features.

mod pairs;
mod states;

use std::collections::BTreeMap;

use history::{Kind, Name};
use xxhash_rust::xxh3::xxh3_64;

use crate::sim::Report;

history::names! {
    /// The features by which runs are compared.
    pub enum Representation as "representation" {
        /// Events and probes, each in an abstract state: the processes that believe that they hold the lock,
        /// what the servers store, and the clocks that are off.
        States = "states",
        /// Events of two processes in the order in which they came.
        Pairs = "pairs",
    }
}

/// The features of a run, each with the time at which it first came.
pub(crate) type Features = BTreeMap<u64, u64>;

/// The features of one run, and its graded probes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traits {
    features: Features,
    /// For each graded probe the smallest number and its time.
    closest: BTreeMap<u64, (u64, u64)>,
}

/// All that the runs of a search have reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached {
    seen: BTreeMap<u64, u64>,
    closest: BTreeMap<u64, u64>,
}

/// A feature that no run had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct New {
    /// The true time at which the run first had it, in nanoseconds.
    pub(crate) at: u64,
    feature: u64,
}

impl Traits {
    /// Describes a run.
    pub(crate) fn of(report: &Report, by: Representation) -> Self {
        let mut traits = Self::default();
        match by {
            Representation::States => states::describe(report, &mut traits.features),
            Representation::Pairs => pairs::describe(report, &mut traits.features),
        }
        for hit in report.probes.log() {
            if let Some(number) = hit.graded {
                let least = traits.closest.entry(hit.probe).or_insert((number, hit.at));
                *least = (*least).min((number, hit.at));
            }
        }
        traits
    }
}

impl Reached {
    /// Adds the features of a run. Returns the new feature that the run reached last, if any is new. A
    /// graded probe is new if its number is smaller than all before.
    pub(crate) fn add(&mut self, traits: &Traits) -> Option<New> {
        let mut last: Option<New> = None;
        for (feature, at) in &traits.features {
            let count = self.seen.entry(*feature).or_insert(0);
            *count += 1;
            if *count == 1 {
                last = last.max(Some(New { at: *at, feature: *feature }));
            }
        }
        for (probe, (number, at)) in &traits.closest {
            let least = self.closest.entry(*probe).or_insert(u64::MAX);
            if number < least {
                *least = *number;
                last = last.max(Some(New { at: *at, feature: mix(&[*probe, *number]) }));
            }
        }
        last
    }

    /// Returns the number of runs that have had this feature.
    pub(crate) fn times(&self, new: New) -> u64 {
        self.seen.get(&new.feature).copied().unwrap_or_default()
    }

    /// Returns the number of features that runs have had.
    pub(crate) fn count(&self) -> u64 {
        self.seen.len() as u64
    }
}

fn mix(numbers: &[u64]) -> u64 {
    let mut bytes = [0; 64];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    xxh3_64(&bytes)
}

/// Returns a number for the event: its name, its outcome, and the name of a step or of a fault. Its key,
/// owner, token and body have no influence.
fn label(kind: &Kind) -> u64 {
    let word = match kind {
        Kind::WorkerStep { step, .. } | Kind::PointPassed { step } => Some(step),
        Kind::FaultApplied { verb, .. } | Kind::FaultHealed { verb, .. } => Some(verb),
        Kind::LeaseNotAcquired { outcome, .. }
        | Kind::LeaseRenewFailed { outcome, .. }
        | Kind::LeaseLost { outcome, .. }
        | Kind::LeaseReleased { outcome, .. }
        | Kind::SectionLeft { outcome, .. }
        | Kind::WriteAnswered { outcome, .. }
        | Kind::ConditionalAnswered { outcome, .. }
        | Kind::UpdateEnded { outcome, .. } => outcome.as_ref(),
        _ => None,
    };
    mix(&[kind.name() as u64, word.map_or(0, |word| xxh3_64(word.as_str().as_bytes()))])
}

/// Returns the key that the event is about.
fn key(kind: &Kind) -> Option<&Name> {
    match kind {
        Kind::LeaseRequested { key, .. }
        | Kind::LeaseRetried { key, .. }
        | Kind::LeaseQueued { key, .. }
        | Kind::LeaseAcquired { key, .. }
        | Kind::LeaseNotAcquired { key, .. }
        | Kind::LeaseRenewed { key, .. }
        | Kind::LeaseRenewFailed { key, .. }
        | Kind::LeaseLost { key, .. }
        | Kind::LeaseReleaseRequested { key, .. }
        | Kind::LeaseReleased { key, .. }
        | Kind::WriteAccepted { key, .. }
        | Kind::WriteRepeated { key, .. }
        | Kind::WriteRejected { key, .. }
        | Kind::ResourceRead { key, .. }
        | Kind::ReadRejected { key, .. }
        | Kind::ConditionalAccepted { key, .. }
        | Kind::ConditionalRepeated { key, .. }
        | Kind::ConditionalRejected { key, .. }
        | Kind::SectionEntered { key, .. }
        | Kind::SectionLeft { key, .. }
        | Kind::WriteSent { key, .. }
        | Kind::WriteAnswered { key, .. }
        | Kind::ConditionalSent { key, .. }
        | Kind::ConditionalAnswered { key, .. }
        | Kind::UpdateEnded { key, .. }
        | Kind::KeyGranted { key, .. }
        | Kind::KeyExtended { key, .. }
        | Kind::KeyDeleted { key, .. }
        | Kind::KeyExpired { key, .. }
        | Kind::WaiterGone { key, .. } => Some(key),
        Kind::WorkerStep { key, .. } => key.as_ref(),
        _ => None,
    }
}
