//! The leases that a lock holds, and whether it is closed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use dlock_runtime::Instant;
use futures_util::future::BoxFuture;

use crate::sync::{Changes, Guarded};

/// A lease that is held, as the end of its lock needs it.
pub(crate) trait Lease: Send + Sync {
    /// Returns true if nobody has begun to release it.
    fn is_unreleased(&self) -> bool;

    /// Begins the release: those who work under the lease are told.
    fn tell_release(&self, now: Instant);

    /// Releases it, for at most its TTL from `now` on; returns true if the server has confirmed that.
    fn release_from(self: Arc<Self>, now: Instant) -> BoxFuture<'static, bool>;
}

/// The open leases of a lock, until it is closed.
#[derive(Default)]
pub(crate) struct Open {
    /// An acquire is counted before it reads this, and the end of the lock sets this before it reads the
    /// count. Sequential consistency makes one of them see the other.
    is_closed: AtomicBool,
    /// Wakes those who wait for the lock to be closed.
    closing: Changes,
    granted: AtomicU64,
    /// The leases whose handles exist, by the number of their grant.
    held: Guarded<BTreeMap<u64, Weak<dyn Lease>>>,
}

impl Open {
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Notes a lease; returns the number under which [`Open::ended`] forgets it.
    pub(crate) fn began(&self, lease: Weak<dyn Lease>) -> u64 {
        let number = self.granted.fetch_add(1, Ordering::Relaxed);
        self.held.lock().insert(number, lease);
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
    pub(crate) fn close(&self) -> Vec<Arc<dyn Lease>> {
        self.is_closed.store(true, Ordering::SeqCst);
        self.closing.announce();
        self.unreleased()
    }

    /// Returns the leases that are held, and that nobody releases yet.
    pub(crate) fn unreleased(&self) -> Vec<Arc<dyn Lease>> {
        let held: Vec<_> = self.held.lock().values().filter_map(Weak::upgrade).collect();
        held.into_iter().filter(|lease| lease.is_unreleased()).collect()
    }
}
