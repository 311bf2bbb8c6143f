//! Counts the releases that run in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sync::Changes;

/// The releases of one lock that run in the background.
#[derive(Clone, Default)]
pub(crate) struct Sweeps(Arc<Count>);

#[derive(Default)]
struct Count {
    running: AtomicUsize,
    changed: Changes,
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
        let Self(count) = self;
        count.changed.until(|| (count.running.load(Ordering::Acquire) == 0).then_some(())).await;
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        let Sweeps(count) = &self.0;
        if count.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            count.changed.announce();
        }
    }
}
