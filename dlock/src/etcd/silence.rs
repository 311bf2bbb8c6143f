//! The silence of a member: for how long calls have waited for it without any answer.

use std::time::Duration;

use dlock_runtime::{Instant, Runtime};

use crate::sync::Guarded;

/// The calls on one connection.
#[derive(Default)]
pub(super) struct Silence(Guarded<State>);

#[derive(Default)]
struct State {
    /// True once the member has answered a call.
    has_answered: bool,
    /// The number of calls that wait for an answer.
    waiting: usize,
    /// When calls began to wait, or the last answer if that is later; `None` while no call waits.
    since: Option<Instant>,
    /// For how long calls waited after the last answer and before `since`.
    waited: Duration,
}

/// A call that waits for its answer. One that is dropped waits no longer.
pub(super) struct Call<'a, R: Runtime> {
    silence: &'a Silence,
    runtime: &'a R,
}

impl Silence {
    /// Notes a call that is about to be sent.
    pub(super) fn call<'a, R: Runtime>(&'a self, runtime: &'a R) -> Call<'a, R> {
        self.0.lock().begin(runtime.now());
        Call { silence: self, runtime }
    }

    /// Returns true if the member has never answered, or if calls have waited for `silence_max` since its
    /// last answer.
    pub(super) fn lasts(&self, silence_max: Duration, now: Instant) -> bool {
        self.0.lock().lasts(silence_max, now)
    }
}

impl<R: Runtime> Call<'_, R> {
    /// Notes the answer.
    pub(super) fn answered(self) {
        self.silence.0.lock().answered(self.runtime.now());
    }
}

impl<R: Runtime> Drop for Call<'_, R> {
    fn drop(&mut self) {
        self.silence.0.lock().end(self.runtime.now());
    }
}

impl State {
    fn begin(&mut self, now: Instant) {
        self.waiting += 1;
        self.since.get_or_insert(now);
    }

    fn answered(&mut self, now: Instant) {
        self.has_answered = true;
        self.waited = Duration::ZERO;
        self.since = Some(now);
    }

    fn end(&mut self, now: Instant) {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            self.waited = self.silence(now);
            self.since = None;
        }
    }

    fn lasts(&self, silence_max: Duration, now: Instant) -> bool {
        !self.has_answered || self.silence(now) >= silence_max
    }

    fn silence(&self, now: Instant) -> Duration {
        self.waited + self.since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Returns the state after an answer to a call at 0 ms.
    fn answered() -> State {
        let mut state = State::default();
        state.begin(at(0));
        assert!(state.lasts(MAX, at(1)), "it has never answered");
        state.answered(at(1));
        state.end(at(1));
        state
    }

    #[test]
    fn silence_begins_with_the_first_call_after_an_answer() {
        let mut state = answered();
        assert!(!state.lasts(MAX, at(1000)), "nothing was asked since");
        state.begin(at(1000));
        state.begin(at(1090));
        assert!(!state.lasts(MAX, at(1099)));
        assert!(state.lasts(MAX, at(1100)), "the first of the two calls counts");
        state.answered(at(1100));
        state.end(at(1100));
        assert!(!state.lasts(MAX, at(1199)));
        assert!(state.lasts(MAX, at(1200)), "the other one waits since the answer");
    }

    #[test]
    fn time_in_which_no_call_waits_is_no_silence() {
        let mut state = answered();
        // Calls that were given up after 40 ms each, a second apart.
        for given_up in [1000, 2000] {
            state.begin(at(given_up));
            state.end(at(given_up + 40));
        }
        state.begin(at(3000));
        assert!(!state.lasts(MAX, at(3019)));
        assert!(state.lasts(MAX, at(3020)), "the three have waited for 100 ms without an answer");
    }
}
