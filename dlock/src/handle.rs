//! The handle of a lease.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};

use crate::backend::{Backend, Released};
use crate::cleanup;
use crate::error::{LostError, ReleaseError, RenewError};
use crate::held::{Held, Phase};
use crate::key::LockKey;
use crate::token::{FencingToken, Owner};
use crate::watchdog::{self, Cap};

/// The longest time for which [`Handle::release`] retries, in request timeouts, without the last request.
const RELEASE_TIMEOUTS: u32 = 3;

/// A lease that was granted. [`Handle::release`] ends it and reports how that ended. A handle may move
/// between tasks and threads.
///
/// # Drop
///
/// A handle that is dropped releases its lease in the background: it stops trusting the lease at once, and a
/// task of the [`Runtime`] sends the release as soon as it runs, after any renewal in progress. It repeats
/// the release until the server has answered, for at most one TTL (with a session: as long as the runtime
/// runs). [`Lock::cleaned_up`](crate::Lock::cleaned_up) waits for such tasks.
///
/// If the runtime ends before, the rest is never sent: the lease ends by its TTL or with the client's
/// session, and others wait until then. Call [`Handle::release`] where that matters.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |lock, _, key| {
/// use std::time::Duration;
///
/// let handle = lock.try_acquire(&key).await?;
/// println!("send {} with each write, within {:?}", handle.fence(), handle.remaining());
/// assert!(handle.is_valid() && handle.remaining() < Duration::from_secs(2));
/// handle.release().await?;
/// # Ok(()) });
/// ```
///
/// A lease that [`Request::without_token`](crate::Request::without_token) asked for is a
/// `Handle<B, Unfenced>`: it has all methods but [`Handle::fence`].
pub struct Handle<B: Backend, T = FencingToken> {
    held: Arc<Held<B>>,
    token: T,
    /// The tokens of the permits beside it.
    beside: Vec<FencingToken>,
    /// The number of its grant.
    number: u64,
}

impl<B: Backend> Handle<B> {
    /// Returns the fencing token. Send it with every write that the lock protects.
    pub fn fence(&self) -> FencingToken {
        self.token
    }

    /// Returns the tokens of the other permits, or of the other readers, that were live when this one was
    /// granted, in ascending order; none for a lock with one permit, and none for a writer. A resource needs
    /// them with [`Handle::fence`]: a permit may write, and a reader read, after a newer one, if it was live
    /// beside that.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// let handle = lock.try_acquire(&key).await?;
    /// // A mutex has no other holders.
    /// assert_eq!(handle.beside(), []);
    /// # Ok(()) });
    /// ```
    pub fn beside(&self) -> &[FencingToken] {
        &self.beside
    }
}

impl<B: Backend, T> Handle<B, T> {
    pub(crate) fn new(held: Held<B>, token: T, beside: Vec<FencingToken>) -> Self {
        let held = Arc::new(held);
        let lease: Weak<Held<B>> = Arc::downgrade(&held);
        let number = held.context().open().began(lease);
        Self { held, token, beside, number }
    }

    /// Returns the state of the lease, which the handles of several keys renew together.
    pub(crate) fn held(&self) -> &Arc<Held<B>> {
        &self.held
    }

    /// Returns the key that is locked.
    pub fn key(&self) -> &LockKey {
        &self.held.claim().key
    }

    /// Returns the owner token of this acquisition.
    pub fn owner(&self) -> &Owner {
        &self.held.claim().owner
    }

    /// Returns the time for which the lease lives on the server, counted from its grant or last renewal:
    /// whole milliseconds. It may be trusted for less: see [`Handle::remaining`].
    pub fn ttl(&self) -> Duration {
        self.held.validity().ttl()
    }

    /// Returns when the lease was acquired, on the runtime's clock: a reading from before the granted request
    /// was sent, from which the validity and each [`Cap`] count.
    pub fn acquired_at(&self) -> Instant {
        self.held.acquired_at()
    }

    /// Returns how long the lease may still be trusted; zero once it is lost. The answer is out of date by
    /// the time it is used: only the fencing token makes a write safe.
    pub fn remaining(&self) -> Duration {
        if self.held.phase() != Phase::Held {
            return Duration::ZERO;
        }
        self.held.valid_until().saturating_since(self.held.now())
    }

    /// Returns whether the lease may still be trusted: see [`Handle::remaining`].
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns when the validity ends, on the runtime's clock, unless the lease is renewed before.
    pub fn valid_until(&self) -> Instant {
        self.held.valid_until()
    }

    /// Completes once the lease may no longer be trusted: its validity is over, a renewal found another
    /// owner, or the handle was released or dropped.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// let handle = lock.try_acquire(&key).await?;
    /// let lost = handle.lost();
    /// handle.release().await?;
    /// // A task that works under the lock can stop now.
    /// lost.await;
    /// # Ok(()) });
    /// ```
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<B, T> {
        let held = Arc::clone(&self.held);
        async move { held.over().await }
    }

    /// Returns whether so little validity is left that the work should come to an end: no more than
    /// [`Options::low_validity`](crate::Options::low_validity), a sixth of the TTL by default. Renewals keep
    /// a lease from it, as long as the server answers. True once the lease is lost.
    pub fn is_low(&self) -> bool {
        self.held.is_low()
    }

    /// Completes once the validity is low ([`Handle::is_low`]). Work that waits for it can still end in an
    /// orderly way; at the end of the validity, [`Handle::while_held`] drops it.
    ///
    /// Source: the threshold at which to stop work is part of the TTL budget in [`Budget`](crate::Budget).
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use std::pin::pin;
    /// use std::time::Duration;
    ///
    /// use dlock::Cap;
    /// use futures_util::future::{Either, select};
    ///
    /// let handle = lock.try_acquire(&key).await?;
    /// let work = async {
    ///     let (mut low, mut done) = (pin!(handle.low()), 0);
    ///     while done < 3 {
    ///         match select(low.as_mut(), pin!(async { 1 })).await {
    ///             Either::Left(_) => break, // The renewals fail: save the state, and stop.
    ///             Either::Right((one, _)) => done += one,
    ///         }
    ///     }
    ///     done
    /// };
    /// assert_eq!(handle.while_held(Cap(Duration::from_secs(60)), work).await?, 3);
    /// # Ok(()) });
    /// ```
    pub fn low(&self) -> impl Future<Output = ()> + Send + use<B, T> {
        let held = Arc::clone(&self.held);
        async move { held.low().await }
    }

    /// Sets the lease back to its full TTL, once. [`Handle::while_held`] does so automatically.
    ///
    /// # Errors
    ///
    /// [`RenewError::Lost`] ends the lease for good, whatever the server answers later. After
    /// [`RenewError::Backend`] the lease is valid for [`Handle::remaining`], and the renewal may be repeated.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// let handle = lock.try_acquire(&key).await?;
    /// let granted_until = handle.valid_until();
    /// handle.renew().await?;
    /// assert!(handle.valid_until() > granted_until);
    /// # Ok(()) });
    /// ```
    pub async fn renew(&self) -> Result<(), RenewError> {
        self.held.renew(Instant::MAX).await.map(|_| ())
    }

    /// Sets the lease to a TTL of `ttl`, counted from now, which later renewals keep, those of a watchdog
    /// included. It may be longer or shorter than the one before, at least some milliseconds;
    /// [`Options::request_timeout`](crate::Options::request_timeout) stays as it is.
    ///
    /// A shorter TTL shortens the validity before the request is sent, since the server may follow it even if
    /// its answer gets lost. For the same reason a TTL stays in force if its renewal fails. A renewal without
    /// an answer may even arrive later: from then on no renewal is trusted for longer than its TTL.
    ///
    /// # Errors
    ///
    /// [`RenewError::Ttl`] if no lease can have this TTL: nothing changes then. Otherwise as
    /// [`Handle::renew`].
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use std::time::Duration;
    ///
    /// let handle = lock.try_acquire(&key).await?;
    /// // The next step takes longer than the others.
    /// handle.renew_for(Duration::from_secs(60)).await?;
    /// assert_eq!(handle.ttl(), Duration::from_secs(60));
    /// assert!(handle.remaining() > Duration::from_secs(55));
    /// # Ok(()) });
    /// ```
    pub async fn renew_for(&self, ttl: Duration) -> Result<(), RenewError> {
        self.renewal(Some(ttl)).await
    }

    /// Renews as [`Handle::renew_for`] does, or without a TTL as [`Handle::renew`], and borrows nothing.
    pub(crate) fn renewal(
        &self,
        ttl: Option<Duration>,
    ) -> impl Future<Output = Result<(), RenewError>> + Send + use<B, T> {
        let held = Arc::clone(&self.held);
        async move {
            let terms = ttl.map(|ttl| held.context().terms_of(Some(ttl))).transpose()?;
            held.renew_with(terms, Instant::MAX).await.map(|_| ())
        }
    }

    /// Runs `work` while the lease is held, and renews the lease every third of its TTL. When the lease is
    /// lost, or the cap is reached, `work` is dropped at its current await point. The loss is declared when
    /// the validity ends and never later, and `work` is not polled again after it. A renewal that fails is
    /// repeated while validity is left.
    ///
    /// `work` may borrow the handle, and learn from [`Handle::low`] that its end is near.
    ///
    /// Requests that `work` has sent already are not called back: the resource must check the fencing token.
    ///
    /// # Errors
    ///
    /// [`LostError`] if `work` was dropped.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use std::time::Duration;
    ///
    /// use dlock::{Cap, LostError};
    ///
    /// let handle = lock.try_acquire(&key).await?;
    /// let sum = handle.while_held(Cap(Duration::from_secs(60)), async { 40 + 2 }).await?;
    /// assert_eq!(sum, 42);
    /// // Work that never ends is dropped when the cap is reached.
    /// let hangs = std::future::pending::<()>();
    /// let ended = handle.while_held(Cap(Duration::from_millis(5)), hangs).await;
    /// assert_eq!(ended, Err(LostError::Capped));
    /// # Ok(()) });
    /// ```
    pub async fn while_held<F: Future>(&self, cap: Cap, work: F) -> Result<F::Output, LostError> {
        watchdog::while_held(&self.held, cap, work).await
    }

    /// Renews the lease in a task of its own until it is lost, released or dropped, or the cap is reached;
    /// then it runs out, or is released if it lives as long as the client's session. For work that is no
    /// future: check [`Handle::lost`] or [`Handle::is_valid`]. A second call replaces the first.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use std::time::Duration;
    ///
    /// use dlock::Cap;
    ///
    /// let handle = lock.try_acquire(&key).await?;
    /// handle.keep_alive(Cap(Duration::from_secs(600)));
    /// for step in 0..3 {
    ///     if !handle.is_valid() {
    ///         return Err("the lease is lost: the rest of the work is another holder's".into());
    ///     }
    ///     println!("step {step}, with token {}", handle.fence());
    /// }
    /// # Ok(()) });
    /// ```
    pub fn keep_alive(&self, cap: Cap) {
        watchdog::keep_alive(&self.held, cap);
    }

    /// Ends the lease, after any renewal in progress. Renewals stop at once. If an answer gets lost, the
    /// release is repeated for at most three request timeouts. If this future is dropped before its end, the
    /// release goes on in the background.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::Unconfirmed`] if the server did not answer in time. The release goes on in the
    /// background for at most one TTL; the lease ends by its TTL at the latest.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use dlock::Released;
    ///
    /// let handle = lock.try_acquire(&key).await?;
    /// if handle.release().await? == Released::NotOwner {
    ///     println!("the lease had ended before: the work may have overlapped with another holder's");
    /// }
    /// # Ok(()) });
    /// ```
    pub async fn release(self) -> Result<Released, ReleaseError> {
        self.release_shared().await
    }

    /// Releases the lease of a handle that several sections share: see [`Handle::release`].
    pub(crate) fn release_shared(&self) -> impl Future<Output = Result<Released, ReleaseError>> + use<B, T> {
        let (held, now) = (Arc::clone(&self.held), self.held.now());
        held.begin_release(now);
        let deadline = now + held.context().options().request_timeout.saturating_mul(RELEASE_TIMEOUTS);
        async move { held.release(now, deadline).await }
    }

    /// Drops the handle without a release: the lease ends by its TTL. Use it if others must wait that long,
    /// for a job that must not run again at once, for example. A lease that lives as long as the client's
    /// session is released in the background when its TTL is over.
    pub fn leave(self) {
        self.held.leave();
        if self.held.context().backend().session_ttl().is_some() {
            let held = Arc::clone(&self.held);
            self.held.runtime().spawn(async move { held.clean_up_at_expiry().await });
        }
    }
}

impl<B: Backend, T> Drop for Handle<B, T> {
    fn drop(&mut self) {
        if self.held.phase() != Phase::Over {
            // Before the release begins: a close looks for leases that nobody releases, then for cleanups.
            let _running = self.held.context().cleanups().begin();
            let (held, now) = (Arc::clone(&self.held), self.held.now());
            held.begin_release(now);
            cleanup::in_background(self.held.context(), async move {
                let deadline = cleanup::deadline(held.context(), now, held.validity().longest_ttl());
                // The result is in the events and metrics.
                let _ = held.release(held.now(), deadline).await;
            });
        }
        self.held.context().open().ended(self.number);
    }
}

impl<B: Backend, T: fmt::Debug> fmt::Debug for Handle<B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("key", self.key())
            .field("owner", &self.owner().prefix())
            .field("fence", &self.token)
            .field("remaining", &self.remaining())
            .finish()
    }
}
