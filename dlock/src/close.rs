//! The end of a lock in its program.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use dlock_runtime::{Instant, Runtime};

use crate::backend::Backend;
use crate::cleanup;
use crate::held::{Held, Phase};
use crate::lock::Lock;
use crate::sync::{Changes, Guarded};

/// The leases that a lock holds, and whether it is closed.
pub(crate) struct Open<B: Backend> {
    is_closed: AtomicBool,
    /// Wakes those who wait for the lock to be closed.
    closing: Changes,
    granted: AtomicU64,
    /// The leases whose handles exist, by the number of their grant.
    held: Guarded<BTreeMap<u64, Weak<Held<B>>>>,
}

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

impl<B: Backend> Default for Open<B> {
    fn default() -> Self {
        let (is_closed, granted) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { is_closed, closing: Changes::default(), granted, held: Guarded::default() }
    }
}

impl<B: Backend> Open<B> {
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Notes a lease; returns the number under which [`Open::ended`] forgets it.
    pub(crate) fn began(&self, held: &Arc<Held<B>>) -> u64 {
        let number = self.granted.fetch_add(1, Ordering::Relaxed);
        self.held.lock().insert(number, Arc::downgrade(held));
        number
    }

    /// Forgets a lease, whose handle is gone.
    pub(crate) fn ended(&self, number: u64) {
        self.held.lock().remove(&number);
    }

    /// Completes when the lock is closed.
    pub(crate) async fn closed(&self) {
        self.closing.until(|| self.is_closed().then_some(())).await;
    }

    /// Closes it; returns the leases that are held, and that nobody releases yet.
    fn close(&self) -> Vec<Arc<Held<B>>> {
        self.is_closed.store(true, Ordering::Release);
        self.closing.announce();
        let held: Vec<_> = self.held.lock().values().filter_map(Weak::upgrade).collect();
        held.into_iter().filter(|held| held.phase() < Phase::Releasing).collect()
    }
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
        leases.iter().for_each(|held| held.begin_release(now));
        let released = Arc::new(AtomicUsize::new(0));
        let count = leases.len();
        for held in leases {
            let released = Arc::clone(&released);
            let until = cleanup::deadline(context, now, held.claim().ttl);
            cleanup::in_background(context, async move {
                let is_released = held.release(held.now(), until).await.is_ok();
                released.fetch_add(usize::from(is_released), Ordering::AcqRel);
            });
        }
        let is_clean = self.cleaned_up(deadline).await;
        let released = released.load(Ordering::Acquire);
        Closed { released, unconfirmed: count - released, is_clean }
    }
}
