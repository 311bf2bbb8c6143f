//! The lock for programs without async code: each call blocks its thread until its result is there.
//!
//! A [`Lock`] has a thread of its own, which speaks to the lock servers, renews leases and releases those
//! whose handles were dropped. It ends with the last clone of the lock and the last handle.
//!
//! Call it in any thread, also in one that runs async code; there it blocks that thread's other tasks.
//!
//! # Example
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use dlock::blocking::Lock;
//! use dlock::{LockKey, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lock = Lock::connect("redis://127.0.0.1", Options::new(Duration::from_secs(30)))?;
//! let handle = lock.acquire(&LockKey::new("order", "42")?, Duration::from_secs(5))?;
//! println!("order 42: send token {} with each write", handle.fence());
//! handle.release()?;
//! lock.close(Duration::from_secs(5));
//! # Ok(()) }
//! ```

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use ::tokio::runtime::{Builder, Runtime as Tokio};

use crate::close::Closed;
use crate::error::{AcquireError, ReleaseError, RenewError, TryAcquireError};
use crate::lock::Lock as AsyncLock;
use crate::{AnyBackend, Cap, ConnectError, ConnectOptions, FencingToken, LockKey, Options, Owner};
use crate::{Handle as AsyncHandle, Released, TokioRuntime};

type Backend = AnyBackend<TokioRuntime>;

/// Acquires locks on one lock server, like [`dlock::Lock`](crate::Lock), and blocks meanwhile. Clones are
/// cheap and share the connections.
#[derive(Clone)]
pub struct Lock {
    lock: AsyncLock<Backend>,
    thread: Arc<Thread>,
}

impl Lock {
    /// Connects to the lock servers that `url` names; see [`AnyBackend::from_url`] for the forms of a URL.
    ///
    /// # Errors
    ///
    /// [`ConnectError`], as of [`dlock::Lock::connect`](crate::Lock::connect); [`ConnectError::Thread`] if
    /// the lock's thread can't be started.
    pub fn connect(url: &str, options: Options) -> Result<Self, ConnectError> {
        Self::connect_with(url, options, ConnectOptions::default())
    }

    /// Connects as [`Lock::connect`] does, with options that a URL can't hold, such as certificates.
    ///
    /// # Errors
    ///
    /// As [`Lock::connect`].
    pub fn connect_with(url: &str, options: Options, servers: ConnectOptions) -> Result<Self, ConnectError> {
        let thread = Arc::new(Thread::start()?);
        let url = url.to_owned();
        let lock = thread.run(async move { AsyncLock::connect_with(&url, options, servers).await })?;
        Ok(Self { lock, thread })
    }

    /// Waits until the lease on `key` is acquired, for at most `wait`.
    ///
    /// # Errors
    ///
    /// [`AcquireError`], as of [`dlock::Lock::acquire`](crate::Lock::acquire).
    pub fn acquire(&self, key: &LockKey, wait: Duration) -> Result<Handle, AcquireError> {
        self.acquire_for(key, self.options().ttl, wait)
    }

    /// Waits as [`Lock::acquire`] does, for a lease with a TTL of its own instead of [`Options::ttl`].
    ///
    /// # Errors
    ///
    /// [`AcquireError::Ttl`] if no lease can have this TTL. Otherwise as [`Lock::acquire`].
    pub fn acquire_for(&self, key: &LockKey, ttl: Duration, wait: Duration) -> Result<Handle, AcquireError> {
        let (lock, key) = (self.lock.clone(), key.clone());
        let acquire = async move { lock.request(&key).ttl(ttl).acquire(lock.deadline_in(wait)).await };
        Ok(self.handle(self.thread.run(acquire)?))
    }

    /// Requests the lease on `key` once, for at most [`Options::request_timeout`].
    ///
    /// # Errors
    ///
    /// [`TryAcquireError`], as of [`dlock::Lock::try_acquire`](crate::Lock::try_acquire).
    pub fn try_acquire(&self, key: &LockKey) -> Result<Handle, TryAcquireError> {
        self.try_acquire_for(key, self.options().ttl)
    }

    /// Requests as [`Lock::try_acquire`] does, a lease with a TTL of its own instead of [`Options::ttl`].
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Ttl`] if no lease can have this TTL. Otherwise as [`Lock::try_acquire`].
    pub fn try_acquire_for(&self, key: &LockKey, ttl: Duration) -> Result<Handle, TryAcquireError> {
        let (lock, key) = (self.lock.clone(), key.clone());
        let acquire = async move { lock.request(&key).ttl(ttl).try_acquire().await };
        Ok(self.handle(self.thread.run(acquire)?))
    }

    /// Closes the lock, with all its clones, for a program that ends, within `wait`: see
    /// [`dlock::Lock::close`](crate::Lock::close).
    pub fn close(&self, wait: Duration) -> Closed {
        let lock = self.lock.clone();
        self.thread.run(async move { lock.close(lock.deadline_in(wait)).await })
    }

    /// Returns the options.
    pub fn options(&self) -> &Options {
        self.lock.options()
    }

    fn handle(&self, handle: AsyncHandle<Backend>) -> Handle {
        Handle { handle, thread: Arc::clone(&self.thread) }
    }
}

/// A lease that was granted, like [`dlock::Handle`](crate::Handle): there is more about each function. A
/// handle that is dropped releases its lease in the background, on the lock's thread. That thread ends with
/// the last clone of the lock and the last handle, and what it has not sent by then is never sent: call
/// [`Handle::release`], or [`Lock::close`] at the end of a program.
pub struct Handle {
    // Dropped first: its release needs the thread.
    handle: AsyncHandle<Backend>,
    thread: Arc<Thread>,
}

impl Handle {
    /// Returns the key that is locked.
    pub fn key(&self) -> &LockKey {
        self.handle.key()
    }

    /// Returns the owner token of this acquisition.
    pub fn owner(&self) -> &Owner {
        self.handle.owner()
    }

    /// Returns the fencing token. Send it with every write that the lock protects.
    pub fn fence(&self) -> FencingToken {
        self.handle.fence()
    }

    /// Returns the time for which the lease lives on the server, counted from its grant or last renewal.
    pub fn ttl(&self) -> Duration {
        self.handle.ttl()
    }

    /// Returns how long the lease may still be trusted; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.handle.remaining()
    }

    /// Returns whether the lease may still be trusted.
    pub fn is_valid(&self) -> bool {
        self.handle.is_valid()
    }

    /// Returns whether so little validity is left that the work should come to an end.
    pub fn is_low(&self) -> bool {
        self.handle.is_low()
    }

    /// Sets the lease back to its full TTL, once.
    ///
    /// # Errors
    ///
    /// [`RenewError`], as of [`dlock::Handle::renew`](crate::Handle::renew).
    pub fn renew(&self) -> Result<(), RenewError> {
        self.thread.run(self.handle.renewal(None))
    }

    /// Sets the lease to a TTL of `ttl`, counted from now, which later renewals keep.
    ///
    /// # Errors
    ///
    /// [`RenewError`], as of [`dlock::Handle::renew_for`](crate::Handle::renew_for).
    pub fn renew_for(&self, ttl: Duration) -> Result<(), RenewError> {
        self.thread.run(self.handle.renewal(Some(ttl)))
    }

    /// Renews the lease in the background every third of its TTL, until it is lost, released or dropped, or
    /// the cap is reached. The work can't be stopped from outside: check [`Handle::is_valid`] before each
    /// step.
    pub fn keep_alive(&self, cap: Cap) {
        self.handle.keep_alive(cap);
    }

    /// Ends the lease, for at most three request timeouts and one more request.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::Unconfirmed`] if the server did not answer in time. The release goes on in the
    /// background as long as the lock's thread runs; the lease ends by its TTL at the latest.
    pub fn release(self) -> Result<Released, ReleaseError> {
        let Self { handle, thread } = self;
        thread.run(handle.release())
    }

    /// Drops the handle without a release: the lease ends by its TTL.
    pub fn leave(self) {
        self.handle.leave();
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

/// The thread of a lock, with the tokio runtime that it drives.
struct Thread(Option<Tokio>);

impl Thread {
    fn start() -> Result<Self, ConnectError> {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(1).thread_name("dlock").enable_all();
        let tokio = builder.build().map_err(|error| ConnectError::Thread { reason: error.to_string() })?;
        Ok(Self(Some(tokio)))
    }

    /// Runs `task` there, and blocks until it ends. `Runtime::block_on` would panic inside of async code.
    fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        let (sender, receiver) = sync_channel(1);
        if let Some(tokio) = &self.0 {
            tokio.spawn(async move { drop(sender.send(task.await)) });
        }
        // The thread outlives this call, so the answer is missing only after a panic in `task`.
        receiver.recv().unwrap_or_else(|_| std::panic::resume_unwind(Box::new("a call of the lock panicked")))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Dropping a runtime waits for its thread, and panics inside of async code.
        if let Some(tokio) = self.0.take() {
            tokio.shutdown_background();
        }
    }
}
