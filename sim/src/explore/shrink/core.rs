//! Drops the core phase, or puts processes back into the core.

use super::Shrinking;
use crate::sim::{Core, Schedule, Subject};

/// Drops the core phase if the cause does not need it, or else leaves fewer processes outside the core.
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

/// Drops the processes from the core phase that the world does not have.
pub(super) fn forget<O>(candidate: &mut Schedule<O>, known: &[String]) {
    let Some(core) = &mut candidate.core else { return };
    for names in [&mut core.crashed, &mut core.cut] {
        names.retain(|name| known.contains(name));
    }
}

fn offer<S: Subject>(shrinking: &mut Shrinking<'_, S>, core: Option<Core>) -> bool {
    shrinking.offer(Schedule { core, ..shrinking.best.clone() })
}
