//! The times at which messages arrive that a fault has delayed.

use std::collections::BTreeMap;
use std::time::Duration;

use history::{Event, Kind, Nanos};

use crate::faults::Fault;

/// Returns how late messages may arrive after the end of each fault, by the number of the fault.
pub(super) fn in_flight(faults: &[Fault]) -> BTreeMap<u64, Duration> {
    let late = (0..).zip(faults).map(|(number, fault)| (number, fault.what.in_flight().duration()));
    late.filter(|(_, late)| !late.is_zero()).collect()
}

/// Returns the time at which the last message has arrived that a fault had delayed.
pub(super) fn last_arrival(events: &[Event], in_flight: &BTreeMap<u64, Duration>) -> Nanos {
    let arrival = |event: &Event| match &event.kind {
        Kind::FaultHealed { fault, .. } => in_flight.get(fault).map(|late| event.at.after(*late)),
        _ => None,
    };
    events.iter().filter_map(arrival).max().unwrap_or(Nanos(0))
}
