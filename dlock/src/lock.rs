//! A lock on one lock server.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, timeout_at};

use crate::backend::Backend;
use crate::context::Context;
use crate::error::{AcquireError, TryAcquireError};
use crate::handle::Handle;
use crate::key::LockKey;
use crate::options::{Options, OptionsError};
use crate::request::Request;

/// Acquires locks on one lock server, all with the same options. Clones are cheap and share the server's
/// connections.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use dlock::redis::{Redis, RedisOptions};
/// use dlock::{Lock, LockKey, Options, Runtime};
///
/// /// Makes one lock for the whole program: all its keys share the server's connections.
/// fn lock<R: Runtime>(runtime: R) -> Result<Lock<Redis<R>>, Box<dyn std::error::Error>> {
///     let redis = Redis::new(runtime, "127.0.0.1:6379", RedisOptions::default())?;
///     Ok(Lock::new(redis, Options::new(Duration::from_secs(30)))?)
/// }
/// ```
pub struct Lock<B: Backend>(Context<B>);

impl<B: Backend> Lock<B> {
    /// Creates a lock on `backend`. Sends nothing: the first acquire does.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] for options that contradict each other, above all a TTL that is not longer than the
    /// drift margin.
    pub fn new(backend: B, options: Options) -> Result<Self, OptionsError> {
        Context::new(backend, options).map(Self)
    }

    /// Waits until the lease on `key` is acquired or `deadline` passes.
    ///
    /// A lease that the server grants is either returned or released: if an answer gets lost, the request is
    /// repeated, and an acquire that fails, or whose future is dropped, releases in the background any lease
    /// that may have been granted.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] says what prevented the acquire until the deadline passed. Only a refusal that no
    /// retry can change (a wrong password, for example) ends the wait earlier.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, runtime, key| {
    /// use std::time::Duration;
    ///
    /// use dlock::{AcquireError, Runtime};
    ///
    /// let handle = lock.acquire(&key, runtime.now() + Duration::from_secs(5)).await?;
    /// assert_eq!(handle.key().name(), "orders:42");
    /// // Another acquire waits in vain, since this handle holds the lock.
    /// let in_vain = lock.acquire(&key, runtime.now() + Duration::from_millis(20)).await;
    /// assert!(matches!(in_vain, Err(AcquireError::Taken { .. })));
    /// # Ok(()) });
    /// ```
    pub async fn acquire(&self, key: &LockKey, deadline: Instant) -> Result<Handle<B>, AcquireError> {
        self.request(key).acquire(deadline).await
    }

    /// Requests the lease on `key` once, for at most [`Options::request_timeout`].
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Taken`] if another owner has it, with the time left to that lease.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use dlock::TryAcquireError;
    ///
    /// let first = lock.try_acquire(&key).await?;
    /// match lock.try_acquire(&key).await {
    ///     Err(TryAcquireError::Taken { retry_after }) => println!("busy for {retry_after:?}"),
    ///     other => panic!("two holders: {first:?} and {other:?}"),
    /// }
    /// # Ok(()) });
    /// ```
    pub async fn try_acquire(&self, key: &LockKey) -> Result<Handle<B>, TryAcquireError> {
        self.request(key).try_acquire().await
    }

    /// Waits until a lease for reading `key` is acquired or `deadline` passes: short for
    /// `request(key).shared().acquire(deadline)`. Other readers may have theirs at the same time. The lock
    /// needs [`Options::readers`].
    ///
    /// # Errors
    ///
    /// As [`Request::acquire`].
    pub async fn acquire_shared(&self, key: &LockKey, deadline: Instant) -> Result<Handle<B>, AcquireError> {
        self.request(key).shared().acquire(deadline).await
    }

    /// Begins a request for the lease on `key` that differs from the options; nothing is sent before
    /// [`Request::acquire`] or [`Request::try_acquire`].
    pub fn request<'a>(&'a self, key: &'a LockKey) -> Request<'a, B> {
        Request::new(&self.0, key)
    }

    /// Waits for the cleanups, which release in the background; returns false if `deadline` passes first.
    ///
    /// Call it before the program ends: a release that was not sent by then is never sent, and a lease that
    /// was granted without the client knowing it lasts until its TTL.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, runtime, key| {
    /// # use std::time::Duration;
    /// # use dlock::Runtime;
    /// // A handle that is dropped releases its lease in the background.
    /// drop(lock.try_acquire(&key).await?);
    /// assert!(lock.cleaned_up(runtime.now() + Duration::from_secs(1)).await);
    /// # Ok(()) });
    /// ```
    pub async fn cleaned_up(&self, deadline: Instant) -> bool {
        timeout_at(self.runtime(), deadline, pin!(self.0.cleanups().none())).await.is_ok()
    }

    /// Returns the time in `wait` from now on the runtime's clock: a deadline for [`Lock::acquire`].
    pub fn deadline_in(&self, wait: Duration) -> Instant {
        self.runtime().now() + wait
    }

    /// Returns the options.
    pub fn options(&self) -> &Options {
        self.0.options()
    }

    /// Returns the lock server.
    pub fn backend(&self) -> &B {
        self.0.backend()
    }

    pub(crate) fn context(&self) -> &Context<B> {
        &self.0
    }

    fn runtime(&self) -> &B::Runtime {
        self.0.runtime()
    }
}

impl<B: Backend> Clone for Lock<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Backend> fmt::Debug for Lock<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("options", self.options()).finish_non_exhaustive()
    }
}
