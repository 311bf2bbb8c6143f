//! Shortens the lengths of time in faults: how long one lasts, how far it moves a clock, when it strikes.

use super::Shrinking;
use crate::explore::vary::{self, Dial, STEP};
use crate::sim::Subject;

/// Shortens every length of every fault.
pub(super) fn shorten<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    for number in 0..shrinking.best.faults.len() {
        let Some(fault) = shrinking.best.faults.get(number) else { return };
        for dial in vary::dials(fault) {
            shorten_one(shrinking, number, &dial);
        }
    }
}

/// Shortens one length: to the least if the cause remains, or else to the end of the range of shorter lengths
/// that keep the cause. A length that can't be shortened by one step stays, which takes two runs.
fn shorten_one<S: Subject>(shrinking: &mut Shrinking<'_, S>, number: usize, dial: &Dial) {
    let (least, length) = (dial.least(), dial.length.nanos());
    if set(shrinking, number, dial, least) {
        return;
    }
    let next = length.saturating_sub(1) / STEP * STEP;
    if next > least && set(shrinking, number, dial, next) {
        vary::bisect(least, next, |nanos| set(shrinking, number, dial, nanos));
    }
}

fn set<S: Subject>(shrinking: &mut Shrinking<'_, S>, number: usize, dial: &Dial, nanos: u64) -> bool {
    if nanos >= dial.length.nanos() {
        return false;
    }
    let changed = shrinking
        .best
        .faults
        .get(number)
        .and_then(|fault| vary::turned(&shrinking.trials.subject.faults(), fault, dial, nanos));
    changed.is_some_and(|fault| shrinking.offer_fault(number, fault))
}
