//! Opens a shared connection or session once for all waiting tasks.

use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};

use crate::error::BackendError;
use crate::sync::Guarded;

/// A shared value that one task at a time opens. The others wait for that attempt and share its result.
pub(crate) struct SingleFlight<T> {
    state: Guarded<State<T>>,
    /// Locked while the value is opened.
    gate: AsyncMutex<()>,
}

struct State<T> {
    current: Option<T>,
    /// Counts the finished attempts.
    attempts: u64,
    /// The failure of the last attempt.
    failure: Option<BackendError>,
}

/// The number of attempts that had finished when a caller began to wait.
pub(crate) struct Seen(u64);

/// The right to open the value.
pub(crate) struct Turn<'a, T> {
    flight: &'a SingleFlight<T>,
    _gate: AsyncMutexGuard<'a, ()>,
}

impl<T: Clone> SingleFlight<T> {
    /// Returns the value if it is usable.
    ///
    /// # Errors
    ///
    /// The number of finished attempts, if there is no usable value: wait for a turn then.
    pub(crate) fn current(&self, is_usable: impl FnOnce(&T) -> bool) -> Result<T, Seen> {
        let state = self.state.lock();
        let usable = state.current.as_ref().filter(|current| is_usable(current));
        usable.cloned().ok_or(Seen(state.attempts))
    }

    /// Waits until no other attempt is in progress.
    pub(crate) async fn turn(&self) -> Turn<'_, T> {
        Turn { flight: self, _gate: self.gate.lock().await }
    }

    /// Shares the value no more, if it is the one that `is_meant`.
    #[cfg(any(test, feature = "redis", feature = "zookeeper"))]
    pub(crate) fn retire(&self, is_meant: impl FnOnce(&T) -> bool) {
        let mut state = self.state.lock();
        if state.current.as_ref().is_some_and(is_meant) {
            state.current = None;
        }
    }
}

impl<T: Clone> Turn<'_, T> {
    /// Returns the result of the attempt for which this caller has waited; `None` if there was none and the
    /// caller must open the value.
    pub(crate) fn shared(
        &self,
        seen: &Seen,
        is_usable: impl FnOnce(&T) -> bool,
    ) -> Option<Result<T, BackendError>> {
        let state = self.flight.state.lock();
        if let Some(current) = state.current.as_ref().filter(|current| is_usable(current)) {
            return Some(Ok(current.clone()));
        }
        state.failure.clone().filter(|_| state.attempts != seen.0).map(Err)
    }

    /// Shares the result of an attempt with those who wait.
    pub(crate) fn finish(self, opened: Result<T, BackendError>) -> Result<T, BackendError> {
        let mut state = self.flight.state.lock();
        state.attempts += 1;
        state.current = opened.as_ref().ok().cloned();
        state.failure = opened.as_ref().err().cloned();
        opened
    }
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        let state = Guarded::new(State { current: None, attempts: 0, failure: None });
        Self { state, gate: AsyncMutex::new(()) }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn waiting_callers_share_the_result_of_one_attempt() {
        let flight = SingleFlight::default();
        let seen = |flight: &SingleFlight<u32>| flight.current(|_| true).err().unwrap();
        let (first, second) = (seen(&flight), seen(&flight));
        let turn = flight.turn().now_or_never().unwrap();
        assert!(flight.turn().now_or_never().is_none(), "one at a time");
        assert!(turn.shared(&first, |_| true).is_none());
        assert_eq!(turn.finish(Err(BackendError::NoAnswer)), Err(BackendError::NoAnswer));
        let turn = flight.turn().now_or_never().unwrap();
        assert_eq!(turn.shared(&second, |_| true), Some(Err(BackendError::NoAnswer)));
        // A caller that comes after the failure tries again.
        let third = seen(&flight);
        assert!(turn.shared(&third, |_| true).is_none());
        assert_eq!(turn.finish(Ok(7)), Ok(7));
        assert_eq!(flight.current(|_| true).ok(), Some(7));
        flight.retire(|value| *value == 7);
        assert!(flight.current(|_| true).is_err());
    }
}
