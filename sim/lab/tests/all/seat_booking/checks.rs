//! The checks of the seat booking, by the points that buyers and bank have passed.

use std::collections::BTreeSet;

use history::story::holder;
use sim::{Event, Evidence, Kind};

/// Returns the number of times that `process` has passed the point `step`.
pub fn passed(events: &[Event], process: &str, step: &str) -> usize {
    let is_it = |event: &&Event| {
        event.process.as_str() == process
            && matches!(&event.kind, Kind::PointPassed { step: passed } if passed.as_str() == step)
    };
    events.iter().filter(is_it).count()
}

/// Checks that at most one buyer was told that it has the seat.
pub fn one_buyer(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut buyers = BTreeSet::from(["a", "b"]);
    buyers.retain(|buyer| passed(evidence.events, buyer, "booked recorded") > 0);
    if buyers.len() < 2 { Ok(()) } else { Err("the seat was sold to a and to b".to_owned()) }
}

/// Returns the buyer in the seat: that of the last write that the resource has accepted.
fn seated(events: &[Event]) -> Option<&str> {
    events.iter().rev().find_map(|event| match &event.kind {
        Kind::WriteAccepted { owner, .. } => Some(holder(owner.as_ref())),
        _ => None,
    })
}

/// Checks that each buyer pays at most once and gets back at most that; at its end it has either the seat or
/// no payment. A buyer that died for good, or is not yet at its end, may still get its refund.
pub fn refunded_once(evidence: &Evidence<'_>) -> Result<(), String> {
    for buyer in ["a", "b"] {
        let bank = |word: &str| passed(evidence.events, "bank", &format!("{word} {buyer}"));
        let (charged, refunded) = (bank("charged"), bank("refunded"));
        if charged > 1 || refunded > charged {
            return Err(format!("{buyer} paid {charged} times and was refunded {refunded} times"));
        }
        let ended = |end: &str| passed(evidence.events, buyer, &format!("ended as {end}")) > 0;
        if refunded > 0 && (ended("booked") || seated(evidence.events) == Some(buyer)) {
            return Err(format!("{buyer} has the seat, and its money back"));
        }
        if ended("refunded") && refunded < charged {
            return Err(format!("{buyer} has paid, and has neither the seat nor its money"));
        }
    }
    Ok(())
}
