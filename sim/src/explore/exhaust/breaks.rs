//! The placements that break a promise: the smallest of each cause.

use std::collections::{BTreeMap, BTreeSet};

use crate::explore::{Broken, Violation};
use crate::faults::{Fault, Role, Scene};

/// A placement of faults that breaks a promise.
#[derive(Clone, Debug)]
pub struct Break<O> {
    /// The number of its faults, beside those of the base.
    pub faults: usize,
    /// The faults, the roles of the processes that they affect, and the broken promise:
    /// `pause client: stale_write`.
    pub cause: String,
    /// The violation, with the schedule that shows it again.
    pub violation: Violation<O>,
}

/// For each cause, the first of the smallest placements.
#[derive(Clone, Debug)]
pub(super) struct Breaks<O>(BTreeMap<String, Break<O>>);

impl<O> Default for Breaks<O> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<O: Clone> Breaks<O> {
    /// Keeps the placement unless there is one of the same cause that is as small.
    pub(super) fn add(&mut self, found: Break<O>) {
        match self.0.get(&found.cause) {
            Some(known) if known.faults <= found.faults => {}
            _ => drop(self.0.insert(found.cause.clone(), found)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Break<O>> {
        self.0.values()
    }

    /// Returns the placements that break a promise with as few faults as any, the smallest first.
    pub(super) fn smallest(&self) -> Vec<Break<O>> {
        let mut fewest: BTreeMap<String, usize> = BTreeMap::new();
        for found in self.0.values() {
            for promise in promises(&found.violation) {
                let least = fewest.entry(promise).or_insert(found.faults);
                *least = found.faults.min(*least);
            }
        }
        let is_smallest = |found: &&Break<O>| {
            promises(&found.violation).iter().any(|promise| fewest.get(promise) == Some(&found.faults))
        };
        let mut smallest: Vec<Break<O>> = self.0.values().filter(is_smallest).cloned().collect();
        smallest.sort_by_key(|found| found.faults);
        smallest
    }
}

/// Returns the promises that the placement breaks: verdicts, checks, or a panic.
fn promises<O>(violation: &Violation<O>) -> Vec<String> {
    let verdicts = violation.broken.iter().map(ToString::to_string);
    let checks = violation.schedule.expect.iter().flat_map(|(_, outcome)| outcome.findings.clone());
    let panic = match &violation.cause.broken {
        broken @ (Broken::Panic(_) | Broken::Escape(_)) => Some(broken.to_string()),
        _ => None,
    };
    verdicts.chain(checks).chain(panic).collect()
}

/// Returns the cause of a violation by these faults.
pub(super) fn cause<O>(faults: &[Fault], scene: &dyn Scene, violation: &Violation<O>) -> String {
    let role = |name: &&str| match scene.role(name) {
        Some(Role::Client) => "client",
        Some(Role::Resource) => "resource",
        _ => "server",
    };
    let word = |fault: &Fault| {
        let roles: BTreeSet<&str> = fault.what.processes().iter().map(role).collect();
        let roles: Vec<&str> = roles.into_iter().collect();
        format!("{} {}", fault.what.verb(), roles.join(" and "))
    };
    let mut words: Vec<String> = faults.iter().map(word).collect();
    words.sort();
    let words = if words.is_empty() { "no fault".to_owned() } else { words.join(", ") };
    format!("{words}: {}", promises(violation).join(", "))
}
