//! One acquire with a TTL of its own.

use std::fmt;
use std::time::Duration;

use dlock_runtime::Instant;

use crate::backend::Backend;
use crate::error::{AcquireError, TryAcquireError};
use crate::handle::Handle;
use crate::key::LockKey;
use crate::lock::Lock;

/// A request for one lease that may differ from the lock's options; [`Lock::request`] begins it.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |lock, runtime, key| {
/// use std::time::Duration;
///
/// use dlock::Runtime;
///
/// let deadline = runtime.now() + Duration::from_secs(5);
/// let handle = lock.request(&key).ttl(Duration::from_secs(60)).acquire(deadline).await?;
/// assert_eq!(handle.ttl(), Duration::from_secs(60));
/// // Those who set no TTL get that of the options.
/// handle.release().await?;
/// assert_eq!(lock.try_acquire(&key).await?.ttl(), lock.options().ttl);
/// # Ok(()) });
/// ```
#[must_use = "a request sends nothing before `acquire` or `try_acquire`"]
pub struct Request<'a, B: Backend> {
    lock: &'a Lock<B>,
    key: &'a LockKey,
    ttl: Option<Duration>,
}

impl<'a, B: Backend> Request<'a, B> {
    pub(crate) fn new(lock: &'a Lock<B>, key: &'a LockKey) -> Self {
        Self { lock, key, ttl: None }
    }

    /// Sets the TTL of this lease, instead of [`Options::ttl`](crate::Options::ttl). Fractions of a millisecond
    /// are cut off. [`Options::request_timeout`](crate::Options::request_timeout) stays as it is.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// Waits until the lease is acquired or `deadline` passes: see [`Lock::acquire`].
    ///
    /// # Errors
    ///
    /// [`AcquireError::Ttl`] if no lease can have the TTL, for example since it is above that of the client's
    /// session. Otherwise as [`Lock::acquire`].
    pub async fn acquire(self, deadline: Instant) -> Result<Handle<B>, AcquireError> {
        let terms = self.lock.context().terms_of(self.ttl)?;
        self.lock.acquire_by(self.key, terms, deadline).await
    }

    /// Requests the lease once: see [`Lock::try_acquire`].
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Ttl`] if no lease can have the TTL. Otherwise as [`Lock::try_acquire`].
    pub async fn try_acquire(self) -> Result<Handle<B>, TryAcquireError> {
        let terms = self.lock.context().terms_of(self.ttl)?;
        self.lock.acquire_once(self.key, terms).await
    }
}

impl<B: Backend> fmt::Debug for Request<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("key", self.key).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
