//! Drops the core phase, puts processes back into the core, or begins the phase earlier.

use super::Shrinking;
use crate::explore::vary::{self, STEP};
use crate::sim::{CorePhase, Schedule, Subject};
use crate::span::Span;

/// Drops the core phase if the cause does not need it; otherwise leaves fewer processes outside the core.
pub(super) fn enlarge<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    let Some(core) = shrinking.best.core.clone() else { return };
    if offer(shrinking, None) {
        return;
    }
    for process in core.outside() {
        let Some(core) = &shrinking.best.core else { return };
        let larger = core.with(process);
        offer(shrinking, Some(larger));
    }
}

/// Begins the core phase as early as the cause allows: after one step of time, or else at the end of the
/// range of later times that keep the cause, in whole steps. A phase that can't begin one step earlier stays,
/// which takes two runs.
pub(super) fn begin_earlier<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    let Some(core) = &shrinking.best.core else { return };
    let next = core.at.as_nanos().saturating_sub(1) / STEP * STEP;
    if begin_at(shrinking, STEP) {
        return;
    }
    if next > STEP && begin_at(shrinking, next) {
        vary::bisect(STEP, next, |nanos| begin_at(shrinking, nanos));
    }
}

fn begin_at<S: Subject>(shrinking: &mut Shrinking<'_, S>, nanos: u64) -> bool {
    let Some(core) = shrinking.best.core.clone().filter(|core| nanos < core.at.as_nanos()) else {
        return false;
    };
    offer(shrinking, Some(CorePhase { at: Span::from_nanos(nanos), ..core }))
}

/// Drops the processes from the core phase that the world does not have.
pub(super) fn forget<O>(candidate: &mut Schedule<O>, known: &[String]) {
    let Some(core) = &mut candidate.core else { return };
    for names in [&mut core.crashed, &mut core.cut] {
        names.retain(|name| known.contains(name));
    }
}

fn offer<S: Subject>(shrinking: &mut Shrinking<'_, S>, core: Option<CorePhase>) -> bool {
    shrinking.offer(Schedule { core, ..shrinking.best.clone() })
}
