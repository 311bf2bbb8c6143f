//! Drops faults, several at once first, and replaces those that are left by smaller ones.

use super::Shrinking;
use crate::faults::Fault;
use crate::sim::Subject;

/// The numbers of neighbouring faults that are dropped at once.
const RUNS: [usize; 3] = [4, 2, 1];

/// Drops faults that the cause does not need.
pub(super) fn faults<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    drop_idle(shrinking);
    for length in RUNS {
        let mut first = 0;
        while first < shrinking.best.faults.len() {
            let mut candidate = shrinking.best.clone();
            let last = (first + length).min(candidate.faults.len());
            candidate.faults.drain(first..last);
            // The next faults have moved to the place of the dropped ones.
            if !shrinking.offer(candidate) {
                first += length;
            }
        }
    }
}

/// Replaces each fault by a smaller one of its kind, as long as there is one.
pub(super) fn parts<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    for number in 0..shrinking.best.faults.len() {
        while shrink_part(shrinking, number) {}
    }
}

fn shrink_part<S: Subject>(shrinking: &mut Shrinking<'_, S>, number: usize) -> bool {
    // A repair may have dropped the fault.
    let Some(fault) = shrinking.best.faults.get(number).cloned() else { return false };
    let smaller = fault.what.smaller();
    smaller.into_iter().any(|what| shrinking.offer_fault(number, Fault { when: fault.when.clone(), what }))
}

/// Drops all faults that never struck.
fn drop_idle<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    let Ok(report) = &shrinking.run else { return };
    let mut candidate = shrinking.best.clone();
    let mut struck = report.struck.iter();
    candidate.faults.retain(|_| struck.next().copied().unwrap_or(true));
    shrinking.offer(candidate);
}
