//! What is broken at the moment, by the faults that the history tells of.
//!
//! A fault is in force from `fault_applied` to the `fault_healed` with its number; a process that died is
//! down until a `fault_healed` or `server_started` of its own. A fault that acts once disturbs at its moment
//! only. What a delayed link still carries when its fault ends is late for as long as [`Rules::in_flight`]
//! says: until then the fault counts as not over. A client that died breaks nothing that others need, and
//! one that drops its acquire breaks nothing at all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Rules;
use super::history::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

/// The faults that act once.
const MOMENTARY: [&str; 6] = ["reset", "step", "promote", "lead", "evict", "resume"];
/// The fault that is its client's own choice.
const CANCEL: &str = "cancel";

/// The faults that end with a restart of the process.
const DEADLY: [&str; 2] = ["crash", "stop"];

/// Whether the event's process lives again.
pub(super) fn is_restart(kind: &Kind) -> bool {
    match kind {
        Kind::FaultHealed { verb, .. } => DEADLY.contains(&verb.as_str()),
        Kind::ServerStarted { .. } => true,
        _ => false,
    }
}

#[derive(Default)]
pub(super) struct Faults<'h> {
    in_force: BTreeSet<u64>,
    down: BTreeSet<&'h Name>,
    clients: BTreeSet<&'h Name>,
    /// How long the messages of each fault may still be late after its end, by its number.
    in_flight: BTreeMap<u64, Duration>,
    /// When the last fault ended or acted, and whether it had lasted.
    last: Option<(Nanos, bool)>,
}

impl<'h> Faults<'h> {
    pub(super) fn of(rules: &Rules) -> Self {
        Self { in_flight: rules.in_flight.clone(), ..Self::default() }
    }

    /// Whether `event` breaks something: what holds up to now must be judged before it is observed.
    pub(super) fn is_blow(&self, event: &Event) -> bool {
        match &event.kind {
            Kind::FaultApplied { verb, .. } => verb.as_str() != CANCEL,
            Kind::ProcessCrashed { .. } => !self.clients.contains(&event.process),
            _ => false,
        }
    }

    pub(super) fn observe(&mut self, event: &'h Event) {
        match &event.kind {
            Kind::LeaseRequested { .. } => {
                self.clients.insert(&event.process);
            }
            Kind::FaultApplied { verb, .. } if MOMENTARY.contains(&verb.as_str()) => {
                self.disturbed(event.at, false);
            }
            Kind::FaultApplied { fault, verb, .. } if verb.as_str() != CANCEL => {
                self.in_force.insert(*fault);
            }
            Kind::ProcessCrashed { .. } if !self.clients.contains(&event.process) => {
                self.down.insert(&event.process);
            }
            Kind::FaultHealed { fault, .. } => {
                self.in_force.remove(fault);
                let in_flight = self.in_flight.get(fault).copied().unwrap_or_default();
                self.disturbed(event.at.after(in_flight), true);
            }
            Kind::ServerStarted { .. } => self.disturbed(event.at, true),
            _ => {}
        }
        if is_restart(&event.kind) {
            self.down.remove(&event.process);
        }
    }

    /// Takes note that a fault disturbs until `until`; `lasted` if it did not act once only.
    fn disturbed(&mut self, until: Nanos, lasted: bool) {
        if self.last.is_none_or(|(last, _)| last <= until) {
            self.last = Some((until, lasted));
        }
    }

    /// Since when nothing is broken, and whether the last fault had lasted before; `None` while something is
    /// broken.
    pub(super) fn quiet_since(&self) -> Option<(Nanos, bool)> {
        let is_quiet = self.in_force.is_empty() && self.down.is_empty();
        is_quiet.then(|| self.last.unwrap_or((Nanos(0), false)))
    }
}
