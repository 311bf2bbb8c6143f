//! Makes the subject's own options smaller, and the network the default one.

use super::Shrinking;
use crate::sim::{Network, Schedule, Subject};

/// Replaces the options by smaller ones, as long as there are some.
pub(super) fn smaller<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    shrinking.offer(Schedule { network: Network::default(), ..shrinking.best.clone() });
    let mut at = 0;
    loop {
        let smaller = shrinking.trials.subject.smaller(&shrinking.best.options);
        let Some(options) = smaller.into_iter().nth(at) else { return };
        // Of options that were taken, the ones that come next stand in the same place.
        if !shrinking.offer(Schedule { options, ..shrinking.best.clone() }) {
            at += 1;
        }
        if shrinking.trials.is_over() {
            return;
        }
    }
}
