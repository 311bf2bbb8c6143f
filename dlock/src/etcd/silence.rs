//! The silence of a member: how long it has left calls unanswered.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dlock_runtime::Instant;

/// The calls on one connection.
#[derive(Debug, Default)]
pub(super) struct Silence(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The member has answered at least once.
    has_answered: bool,
    /// When the first call was sent that came after the last answer.
    since: Option<Instant>,
}

impl Silence {
    /// Notes a call that is sent at `now`.
    pub(super) fn asked(&self, now: Instant) {
        self.state().since.get_or_insert(now);
    }

    /// Notes an answer, to whichever call.
    pub(super) fn answered(&self) {
        *self.state() = State { has_answered: true, since: None };
    }

    /// Returns true if no call has been answered for `patience` at `now`, or none ever.
    pub(super) fn lasts(&self, patience: Duration, now: Instant) -> bool {
        let state = self.state();
        !state.has_answered || state.since.is_some_and(|since| now.saturating_since(since) >= patience)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_begins_with_the_first_call_after_an_answer() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let patience = Duration::from_millis(100);
        let silence = Silence::default();
        silence.asked(at(0));
        assert!(silence.lasts(patience, at(1)), "it has never answered");
        silence.answered();
        assert!(!silence.lasts(patience, at(1000)), "nothing was asked since");
        silence.asked(at(1000));
        silence.asked(at(1090));
        assert!(!silence.lasts(patience, at(1099)));
        assert!(silence.lasts(patience, at(1100)), "the first of the two calls counts");
        silence.answered();
        assert!(!silence.lasts(patience, at(1100)));
    }
}
