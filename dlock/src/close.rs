//! The end of a lock in its program.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlock_runtime::{Instant, Runtime};

use crate::backend::Backend;
use crate::cleanup;
use crate::lock::Lock;

/// The result of [`Lock::close`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closed {
    /// The number of leases that were held, and whose release the server has confirmed.
    pub released: usize,
    /// The number of leases whose release was not confirmed in time: each ends by its TTL at the latest.
    pub unconfirmed: usize,
    /// True if no release or cleanup in the background is left.
    pub is_clean: bool,
}

impl<B: Backend> Lock<B> {
    /// Closes the lock, with all its clones, for a program that ends: no acquire begins or goes on
    /// ([`AcquireError::Closed`](crate::AcquireError::Closed)), all leases are released, though their handles
    /// exist, and releases in the background are waited for. All that ends at `deadline` at the latest.
    ///
    /// The holders of the leases are told: [`Handle::lost`](crate::Handle::lost) completes, and
    /// [`Handle::while_held`](crate::Handle::while_held) drops its work at the current await point. Work that
    /// must not be cut short ends before the program calls this.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use std::time::Duration;
    ///
    /// use dlock::TryAcquireError;
    ///
    /// let handle = lock.try_acquire(&key).await?;
    /// // A program calls this when it is told to end, by SIGTERM for example.
    /// let closed = lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    /// assert!(closed.released == 1 && closed.is_clean);
    /// assert!(!handle.is_valid());
    /// assert_eq!(lock.try_acquire(&key).await.unwrap_err(), TryAcquireError::Closed);
    /// # Ok(()) });
    /// ```
    pub async fn close(&self, deadline: Instant) -> Closed {
        let context = self.context();
        let leases = context.open().close();
        // All are told before the first request is sent.
        let now = context.runtime().now();
        leases.iter().for_each(|lease| lease.tell_release(now));
        let (count, released) = (leases.len(), Arc::new(AtomicUsize::new(0)));
        for lease in leases {
            let released = Arc::clone(&released);
            cleanup::in_background(context, async move {
                let is_released = lease.release_from(now).await;
                released.fetch_add(usize::from(is_released), Ordering::AcqRel);
            });
        }
        let is_clean = self.cleaned_up(deadline).await;
        let released = released.load(Ordering::Acquire);
        Closed { released, unconfirmed: count - released, is_clean }
    }
}
