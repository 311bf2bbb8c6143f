//! Makes the subject's own options smaller, the network the default one, and drops later seeds.

use super::Shrinking;
use crate::sim::{Network, Schedule, Subject};

/// Replaces the options by smaller ones, as long as there are some.
pub(super) fn smaller<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    if !shrinking.best.rekey.is_empty() {
        shrinking.offer(Schedule { rekey: Vec::new(), ..shrinking.best.clone() });
    }
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
