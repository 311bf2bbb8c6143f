//! Makes the subject's own options smaller, resets the network to the default one, and drops later seeds.

use super::Shrinking;
use crate::sim::{Network, Schedule, Subject};

/// Replaces the options by smaller ones, as long as there are any.
pub(super) fn smaller<S: Subject>(shrinking: &mut Shrinking<'_, S>) {
    if !shrinking.best.rekey.is_empty() {
        shrinking.offer(Schedule { rekey: Vec::new(), ..shrinking.best.clone() });
    }
    shrinking.offer(Schedule { network: Network::default(), ..shrinking.best.clone() });
    let mut at = 0;
    loop {
        let smaller = shrinking.trials.subject.smaller(&shrinking.best.options);
        let Some(options) = smaller.into_iter().nth(at) else { return };
        // After options are taken, the list is made anew, and the next ones have the same index.
        if !shrinking.offer(Schedule { options, ..shrinking.best.clone() }) {
            at += 1;
        }
        if shrinking.trials.is_over() {
            return;
        }
    }
}
