//! The end of a lock in its program.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlock_runtime::{Instant, Runtime, timeout_at};

use crate::backend::Backend;
use crate::cleanup;
use crate::lock::Lock;
use crate::open::Lease;

/// The result of [`Lock::close`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closed {
    /// The number of leases that were held, and whose release the server has confirmed.
    pub released: usize,
    /// The number of leases whose release was not confirmed in time: each ends by its TTL at the latest,
    /// or with the client's session.
    pub unconfirmed: usize,
    /// True if no acquire is in progress, and no release or cleanup in the background is left.
    pub is_clean: bool,
}

impl<B: Backend> Lock<B> {
    /// Closes the lock, with all its clones, for a program that ends: no acquire begins or goes on
    /// ([`AcquireError::Closed`](crate::AcquireError::Closed)), all leases are released, though their handles
    /// exist, and releases in the background are waited for. All that ends at `deadline` at the latest.
    ///
    /// The holders of the leases are told: [`Handle::lost`](crate::Handle::lost) completes, and
    /// [`Handle::while_held`](crate::Handle::while_held) drops its work at the current await point. Work that
    /// must not be cut short ends before the program calls this. A handle that is released later returns how
    /// its lease ended here.
    ///
    /// An acquire in progress ends when its task runs next, and this waits for that. One that is kept and not
    /// polled makes it wait until `deadline`.
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
        let (context, released) = (self.context(), Arc::new(AtomicUsize::new(0)));
        let mut count = self.release_all(context.open().close(), &released);
        let acquires = pin!(context.acquires().none());
        let have_acquires_ended = timeout_at(context.runtime(), deadline, acquires).await.is_ok();
        // Those that were granted meanwhile, to acquires that had not seen the end of the lock.
        count += self.release_all(context.open().unreleased(), &released);
        let is_clean = self.cleaned_up(deadline).await && have_acquires_ended;
        let released = released.load(Ordering::Acquire);
        Closed { released, unconfirmed: count - released, is_clean }
    }

    /// Releases `leases` in the background, and counts in `released` those whose release is confirmed.
    /// Returns the number of `leases`.
    fn release_all(&self, leases: Vec<Arc<dyn Lease>>, released: &Arc<AtomicUsize>) -> usize {
        let (context, count) = (self.context(), leases.len());
        // All are told before the first request is sent.
        let now = context.runtime().now();
        leases.iter().for_each(|lease| lease.tell_release(now));
        for lease in leases {
            let released = Arc::clone(released);
            cleanup::in_background(context, async move {
                let is_released = lease.release_from(now).await;
                released.fetch_add(usize::from(is_released), Ordering::AcqRel);
            });
        }
        count
    }
}
