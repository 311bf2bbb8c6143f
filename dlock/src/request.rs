//! One acquire, top to bottom.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};

use crate::attempt::Attempt;
use crate::backend::{Answer, Backend};
use crate::context::Context;
use crate::demand::{Demand, Unfenced};
use crate::error::{AcquireError, BackendError, TryAcquireError};
use crate::handle::Handle;
use crate::key::LockKey;
use crate::lease::Terms;
use crate::retry::wait_for_holder;
use crate::token::FencingToken;

/// A request for one lease that may differ from the lock's options; [`Lock::request`](crate::Lock::request)
/// begins it.
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
pub struct Request<'a, B: Backend, T = FencingToken> {
    context: &'a Context<B>,
    key: &'a LockKey,
    ttl: Option<Duration>,
    is_shared: bool,
    demand: PhantomData<T>,
}

impl<'a, B: Backend> Request<'a, B> {
    pub(crate) fn new(context: &'a Context<B>, key: &'a LockKey) -> Self {
        Self { context, key, ttl: None, is_shared: false, demand: PhantomData }
    }

    /// Demands no fencing token, which costs a Redis from version 7 on less: a `SET` instead of a script, and
    /// no counter that stays behind. etcd, ZooKeeper and Redlock grant as before.
    ///
    /// Only for work that may be done twice, where the lock saves effort: no resource can tell the late write
    /// of a holder whose lease has ended. Those who share a key may mix both kinds of request.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// let handle = lock.request(&key).without_token().try_acquire().await?;
    /// println!("warms the cache, at most for {:?}", handle.remaining());
    /// handle.release().await?;
    /// # Ok(()) });
    /// ```
    pub fn without_token(self) -> Request<'a, B, Unfenced> {
        let Self { context, key, ttl, is_shared, .. } = self;
        Request { context, key, ttl, is_shared, demand: PhantomData }
    }
}

impl<B: Backend, T: Demand> Request<'_, B, T> {
    /// Sets the TTL of this lease, instead of [`Options::ttl`](crate::Options::ttl). Fractions of a
    /// millisecond are cut off. [`Options::request_timeout`](crate::Options::request_timeout) stays as it is.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// Requests the lease for reading: other readers may have theirs at the same time, and no writer. The
    /// lock needs [`Options::readers`](crate::Options::readers).
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use dlock::TryAcquireError;
    ///
    /// // The options of this lock have no readers.
    /// let refused = lock.request(&key).shared().try_acquire().await.unwrap_err();
    /// assert_eq!(refused, TryAcquireError::NoReaders);
    /// # Ok(()) });
    /// ```
    pub fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Waits until the lease is acquired or `deadline` passes: see [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Errors
    ///
    /// [`AcquireError::Ttl`] if no lease can have the TTL, for example since it is above that of the client's
    /// session. [`AcquireError::NoReaders`] if the lock has no readers, and the request is one. Otherwise as
    /// [`Lock::acquire`](crate::Lock::acquire).
    pub async fn acquire(self, deadline: Instant) -> Result<Handle<B, T>, AcquireError> {
        let terms = self.context.terms_of(self.ttl)?;
        if self.lacks_readers() {
            return Err(AcquireError::NoReaders);
        }
        self.acquire_by(terms, deadline).await
    }

    /// Requests the lease once: see [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Ttl`] if no lease can have the TTL. [`TryAcquireError::NoReaders`] if the lock has
    /// no readers, and the request is one. Otherwise as [`Lock::try_acquire`](crate::Lock::try_acquire).
    pub async fn try_acquire(self) -> Result<Handle<B, T>, TryAcquireError> {
        let terms = self.context.terms_of(self.ttl)?;
        if self.lacks_readers() {
            return Err(TryAcquireError::NoReaders);
        }
        self.acquire_once(terms).await
    }

    /// Returns true if the request is for reading, and the lock has no readers.
    fn lacks_readers(&self) -> bool {
        self.is_shared && !self.context.options().readers
    }

    /// Begins an attempt, under `terms`, that waits in a queue if `waits`.
    fn begin(&self, terms: Terms, waits: bool) -> Attempt<'_, B> {
        let (share, queue) = (self.context.share(self.is_shared), self.context.queue(waits));
        Attempt::begin(self.context, self.key, terms, T::FENCED, share, queue)
    }

    /// Requests and waits until `deadline` or the end of the lock.
    async fn acquire_by(&self, terms: Terms, deadline: Instant) -> Result<Handle<B, T>, AcquireError> {
        // Dropped after the attempt, whose cleanup is counted by then.
        let _running = self.context.acquires().begin();
        if self.context.open().is_closed() {
            return Err(AcquireError::Closed);
        }
        let acquired = pin!(self.acquire_open(terms, deadline));
        self.while_open(acquired).await.unwrap_or(Err(AcquireError::Closed))
    }

    /// Returns the result of an acquire; `None` if the lock is closed before.
    async fn while_open<E>(
        &self,
        mut acquired: Pin<&mut impl Future<Output = Result<Handle<B, T>, E>>>,
    ) -> Option<Result<Handle<B, T>, E>> {
        let open = self.context.open();
        let mut closed = pin!(open.closed());
        let result = poll_fn(|cx| match acquired.as_mut().poll(cx) {
            Poll::Pending => closed.as_mut().poll(cx).map(|()| None),
            done => done.map(Some),
        });
        // A grant that the close has not seen: its handle is dropped, which releases it.
        result.await.filter(|result| result.is_err() || !open.is_closed())
    }

    async fn acquire_open(&self, terms: Terms, deadline: Instant) -> Result<Handle<B, T>, AcquireError> {
        let mut attempt = self.begin(terms, true);
        let mut now = attempt.started();
        if now >= deadline {
            return Err(attempt.fail(AcquireError::DeadlinePassed, AcquireError::outcome));
        }
        let mut failure = AcquireError::Unavailable(BackendError::NoAnswer);
        for retry in 0u32.. {
            let Some(answer) = attempt.request(now, deadline).await else { break };
            failure = match answer {
                Ok(answer @ (Answer::Granted { .. } | Answer::Unfenced { .. })) => {
                    match attempt.accept(answer) {
                        Some(handle) => return Ok(handle),
                        None => self.back_off(retry, deadline, AcquireError::Late).await,
                    }
                }
                Ok(Answer::Taken { left } | Answer::Placed { left, .. }) => {
                    attempt.wait_for_release(self.next_retry(retry, left).min(deadline)).await;
                    AcquireError::Taken { retry_after: left }
                }
                Ok(Answer::Queued { .. }) => match attempt.wait_in_queue(deadline).await {
                    // The queue wakes its waiters: a backoff on top would leave the lock idle.
                    Ok(()) => AcquireError::Taken { retry_after: None },
                    Err(error) => self.back_off(retry, deadline, AcquireError::Unavailable(error)).await,
                },
                Ok(Answer::Full { waiting }) => {
                    let max = self.context.options().waiters_max.unwrap_or_default();
                    return Err(attempt.fail(AcquireError::QueueFull { waiting, max }, AcquireError::outcome));
                }
                Err(error) if !error.is_passing() => {
                    return Err(attempt.fail(AcquireError::Refused(error), AcquireError::outcome));
                }
                Err(error) => self.back_off(retry, deadline, AcquireError::Unavailable(error)).await,
            };
            now = self.context.runtime().now();
            if now >= deadline {
                break;
            }
            attempt.reopen();
        }
        Err(attempt.fail(failure, AcquireError::outcome))
    }

    /// Requests once, unless the lock is closed before the answer.
    async fn acquire_once(&self, terms: Terms) -> Result<Handle<B, T>, TryAcquireError> {
        // As in `acquire_by`.
        let _running = self.context.acquires().begin();
        if self.context.open().is_closed() {
            return Err(TryAcquireError::Closed);
        }
        let acquired = pin!(self.try_acquire_open(terms));
        self.while_open(acquired).await.unwrap_or(Err(TryAcquireError::Closed))
    }

    async fn try_acquire_open(&self, terms: Terms) -> Result<Handle<B, T>, TryAcquireError> {
        let mut attempt = self.begin(terms, false);
        let now = attempt.started();
        let error = match attempt.request(now, now + self.context.options().request_timeout).await {
            Some(Ok(answer @ (Answer::Granted { .. } | Answer::Unfenced { .. }))) => {
                match attempt.accept(answer) {
                    Some(handle) => return Ok(handle),
                    None => TryAcquireError::Late,
                }
            }
            Some(Ok(Answer::Taken { left } | Answer::Placed { left, .. })) => {
                TryAcquireError::Taken { retry_after: left }
            }
            Some(Ok(Answer::Queued { .. } | Answer::Full { .. })) => {
                TryAcquireError::Taken { retry_after: None }
            }
            Some(Err(error)) => TryAcquireError::Backend(error),
            None => TryAcquireError::Backend(BackendError::NoAnswer),
        };
        Err(attempt.fail(error, TryAcquireError::outcome))
    }

    /// Waits for the backoff, at most until `deadline`; returns `failure`.
    async fn back_off(&self, retry: u32, deadline: Instant, failure: AcquireError) -> AcquireError {
        self.context.runtime().sleep_until(self.next_retry(retry, None).min(deadline)).await;
        failure
    }

    /// Returns when the retry numbered `retry` is due at the latest.
    fn next_retry(&self, retry: u32, left: Option<Duration>) -> Instant {
        let wait = wait_for_holder(self.context.backoff(retry), left);
        self.context.runtime().now() + wait
    }
}

impl<B: Backend, T> fmt::Debug for Request<'_, B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("key", self.key).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
