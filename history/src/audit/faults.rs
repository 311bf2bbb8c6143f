//! The faults in force at each moment of the history.
//!
//! A fault is in force from `fault_applied` to the `fault_healed` with its number; a process that died is
//! down until a `fault_healed` or `server_started` of its own. A fault that acts once is in force only at its
//! moment. Messages that a delayed link still carries when its fault ends are late for up to
//! [`Rules::in_flight`]: until then the fault counts as in force. The death of a client does not affect
//! others, so it is not counted; nor is a dropped acquire.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Rules;
use crate::events::{Event, Nanos};
use crate::vocabulary::{Effect, InstantFault, Kind, Name};

/// Returns true if the event restarts its process.
pub(super) const fn is_restart(kind: &Kind) -> bool {
    matches!(kind, Kind::FaultHealed { effect: Effect::Down, .. } | Kind::ServerStarted { .. })
}

/// Returns true if the fault harms no other process than its own.
const fn is_private(effect: &Effect) -> bool {
    matches!(effect, Effect::Instant(InstantFault::Cancel))
}

#[derive(Default)]
pub(super) struct Faults<'h> {
    in_force: BTreeSet<u64>,
    down: BTreeSet<&'h Name>,
    clients: BTreeSet<&'h Name>,
    /// The time for which messages of each fault may still be late after its end, by the fault's number.
    in_flight: BTreeMap<u64, Duration>,
    /// The time at which the last fault ended or acted.
    last: Nanos,
    /// The time at which the last fault ended that had lasted.
    lasted: Option<Nanos>,
}

impl<'h> Faults<'h> {
    pub(super) fn of(rules: &Rules) -> Self {
        Self { in_flight: rules.in_flight.clone(), ..Self::default() }
    }

    /// Returns true if `event` begins a fault: judge the state before the event first, then observe it.
    pub(super) fn begins_fault(&self, event: &Event) -> bool {
        match &event.kind {
            Kind::FaultApplied { effect, .. } => !is_private(effect),
            Kind::ProcessCrashed { .. } => !self.clients.contains(&event.process),
            _ => false,
        }
    }

    pub(super) fn observe(&mut self, event: &'h Event) {
        match &event.kind {
            Kind::LeaseRequested { .. } => {
                self.clients.insert(&event.process);
            }
            Kind::FaultApplied { effect, .. } if is_private(effect) => {}
            Kind::FaultApplied { effect, .. } if effect.is_instant() => self.disturbed(event.at, false),
            Kind::FaultApplied { fault, .. } => {
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

    /// Notes that a fault was in force until `until`; `lasted` is false if it acted only once.
    fn disturbed(&mut self, until: Nanos, lasted: bool) {
        self.last = self.last.max(until);
        if lasted {
            self.lasted = self.lasted.max(Some(until));
        }
    }

    /// Returns the time since which no fault is in force; `None` while one is.
    pub(super) fn quiet_since(&self) -> Option<Nanos> {
        (self.in_force.is_empty() && self.down.is_empty()).then_some(self.last)
    }

    /// As [`quiet_since`](Self::quiet_since), but not before a client that retries at most after
    /// `longest_retry` has retried: a fault that lasted may have made it wait.
    pub(super) fn retried_since(&self, longest_retry: Duration) -> Option<Nanos> {
        let retried = self.lasted.map(|lasted| lasted.after(longest_retry));
        self.quiet_since().map(|quiet| quiet.max(retried.unwrap_or_default()))
    }
}
