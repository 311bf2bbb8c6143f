//! A value whose changes wake the tasks that wait for them.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A value whose changes wake all who wait for one, in the order in which they began to wait. The order of
/// `tokio::sync::watch` is drawn from a random source of the program. Clones share the value.
pub(super) struct Watched<T>(Arc<Shared<T>>);

struct Shared<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Copy> Watched<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(Shared { value: Mutex::new(value), changed: Notify::new() }))
    }

    pub(super) fn get(&self) -> T {
        *self.value()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value());
        self.0.changed.notify_waiters();
    }

    /// Waits until `holds` is true of the value.
    pub(super) async fn until(&self, holds: impl Fn(T) -> bool) {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // Registered before the check: a change right after the check is not missed.
            changed.as_mut().enable();
            if holds(self.get()) {
                return;
            }
            changed.await;
        }
    }

    fn value(&self) -> MutexGuard<'_, T> {
        self.0.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
