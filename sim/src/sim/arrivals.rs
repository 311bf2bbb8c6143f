//! The arrival times of messages that a fault has delayed.

use std::collections::BTreeMap;
use std::time::Duration;

use history::{Event, Kind, Nanos};

use crate::faults::Fault;

/// Returns the longest time for which messages arrive after the end of each fault, by the fault's number.
pub(super) fn in_flight(faults: &[Fault]) -> BTreeMap<u64, Duration> {
    let late = (0..).zip(faults).map(|(number, fault)| (number, fault.what.in_flight().duration()));
    late.filter(|(_, late)| !late.is_zero()).collect()
}

/// Returns the time at which the last message that a fault had delayed has arrived.
pub(super) fn last_arrival(events: &[Event], in_flight: &BTreeMap<u64, Duration>) -> Nanos {
    let arrival = |event: &Event| match &event.kind {
        Kind::FaultHealed { fault, .. } => in_flight.get(fault).map(|late| event.at.after(*late)),
        _ => None,
    };
    events.iter().filter_map(arrival).max().unwrap_or(Nanos(0))
}
