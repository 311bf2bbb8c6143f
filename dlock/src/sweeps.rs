//! Counts the releases that run in the background.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The releases of one lock that run in the background.
#[derive(Clone, Default)]
pub(crate) struct Sweeps(Arc<Count>);

#[derive(Default)]
struct Count {
    running: AtomicUsize,
    none: Notify,
}

/// One release in the background: counted until it is dropped.
pub(crate) struct Sweep(Sweeps);

impl Sweeps {
    /// Counts one more.
    pub(crate) fn begin(&self) -> Sweep {
        self.0.running.fetch_add(1, Ordering::AcqRel);
        Sweep(self.clone())
    }

    /// Completes once none is running.
    pub(crate) async fn none(&self) {
        loop {
            let mut none = pin!(self.0.none.notified());
            // Registered before the count is read: the last one may end right after.
            none.as_mut().enable();
            if self.0.running.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        let Sweeps(count) = &self.0;
        if count.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            count.none.notify_waiters();
        }
    }
}
