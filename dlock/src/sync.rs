//! Tools for sharing state between tasks of the lock and its backends.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dlock_runtime::{Instant, Runtime};
use futures_util::future::select;
use tokio::sync::Notify;

/// A mutex that stays usable after a panic in one of its users. Lock it only for single steps, so that the
/// data is complete whenever it is unlocked.
#[derive(Default)]
pub(crate) struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(data: T) -> Self {
        Self(Mutex::new(data))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes those who wait for a condition.
#[derive(Default)]
pub(crate) struct Changes(Notify);

impl Changes {
    /// Makes all who wait check their condition again.
    pub(crate) fn announce(&self) {
        self.0.notify_waiters();
    }

    /// Completes at the first announcement after this call.
    pub(crate) fn next(&self) -> impl Future<Output = ()> + Send {
        self.0.notified()
    }

    /// Waits until `check` returns a value. It runs at once and after every announcement.
    pub(crate) async fn until<T>(&self, mut check: impl FnMut() -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.0.notified());
            // Registered before the check: an announcement right after the check is not missed.
            changed.as_mut().enable();
            if let Some(value) = check() {
                return value;
            }
            changed.await;
        }
    }

    /// Waits as [`Changes::until`] does, and also checks again at the time that `expiry` returns after each
    /// check.
    pub(crate) async fn until_or_at<R: Runtime, T>(
        &self,
        runtime: &R,
        expiry: impl Fn() -> Instant,
        mut check: impl FnMut() -> Option<T>,
    ) -> T {
        loop {
            let mut changed = pin!(self.0.notified());
            changed.as_mut().enable();
            if let Some(value) = check() {
                return value;
            }
            select(changed, pin!(runtime.sleep_until(expiry()))).await;
        }
    }
}

/// Counts tasks in progress: those in the background, or acquires.
#[derive(Clone, Default)]
pub(crate) struct Tasks(Arc<Count>);

#[derive(Default)]
struct Count {
    running: AtomicUsize,
    changed: Changes,
}

/// A task that counts as running until this is dropped.
pub(crate) struct Running(Tasks);

impl Tasks {
    /// Counts one more. Sequentially consistent, as [`Tasks::none`] is: see the field `Open::is_closed`.
    pub(crate) fn begin(&self) -> Running {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        Running(self.clone())
    }

    /// Completes once none is running.
    pub(crate) async fn none(&self) {
        let Self(count) = self;
        count.changed.until(|| (count.running.load(Ordering::SeqCst) == 0).then_some(())).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Tasks(count) = &self.0;
        if count.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            count.changed.announce();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn an_announcement_wakes_those_who_wait() {
        let changes = Changes::default();
        let is_ready = std::cell::Cell::new(false);
        let mut waiting = pin!(changes.until(|| is_ready.get().then_some(1)));
        assert!(waiting.as_mut().now_or_never().is_none());
        is_ready.set(true);
        changes.announce();
        assert_eq!(waiting.now_or_never(), Some(1));
    }
}
