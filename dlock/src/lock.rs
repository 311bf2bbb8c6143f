//! A lock: acquire, top to bottom.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::{Attempt, Step};
use crate::backend::{Backend, BackendError};
use crate::error::{AcquireError, TryAcquireError};
use crate::handle::Handle;
use crate::key::LockKey;
use crate::lease::Terms;
use crate::metrics::Meters;
use crate::options::{Options, OptionsError};
use crate::removal::Sweeps;
use crate::retry::wait_for_holder;
use crate::runtime::{Instant, Runtime, timeout_at};

/// The way to locks on one lock server, with the same options for all of them. Clones are cheap and share one connection.
pub struct Lock<B: Backend>(Arc<Inner<B>>);

struct Inner<B> {
    backend: B,
    options: Options,
    terms: Terms,
    meters: Meters,
    sweeps: Sweeps,
}

impl<B: Backend> Lock<B> {
    /// Locks on `backend`. Sends nothing: the first acquire does.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] for options that no lock can work with; above all a TTL that the drift margin uses up.
    pub fn new(backend: B, options: Options) -> Result<Self, OptionsError> {
        let terms = options.terms()?;
        if let Some(session) = backend.ttl_max().filter(|session| *session < terms.ttl) {
            return Err(OptionsError::TtlAboveSession { ttl: terms.ttl, session });
        }
        Ok(Self(Arc::new(Inner {
            backend,
            options,
            terms,
            meters: Meters::default(),
            sweeps: Sweeps::default(),
        })))
    }

    /// Waits until nothing that was given up is left to be released in the background, or `until` passes; whether nothing is.
    ///
    /// For a program that is about to end: a release that it has not sent by then is never sent, and a lease that it was
    /// granted unawares lasts until its TTL.
    pub async fn settled(&self, until: Instant) -> bool {
        timeout_at(self.runtime(), until, pin!(self.0.sweeps.none())).await.is_ok()
    }

    pub(crate) fn sweeps(&self) -> &Sweeps {
        &self.0.sweeps
    }

    /// Waits until the lease on `key` is acquired or `deadline` passes.
    ///
    /// A lease that the server grants is either returned or given back: an answer that got lost is asked for again, and
    /// an acquire that fails, or whose future is dropped, releases in the background what it may have been granted.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] says what stood in the way when the deadline passed. Only a refusal that no retry can change
    /// (a wrong password, say) ends the wait before.
    pub async fn acquire(&self, key: &LockKey, deadline: Instant) -> Result<Handle<B>, AcquireError> {
        let mut attempt = Attempt::begin(self, key);
        if attempt.started() >= deadline {
            return Err(attempt.fail(AcquireError::DeadlinePassed, AcquireError::outcome));
        }
        let mut now = attempt.started();
        let mut failure = AcquireError::Unavailable(BackendError::NoAnswer);
        for retry in 0u32.. {
            match attempt.step(now, deadline).await {
                Step::Granted(lease) => return Ok(attempt.succeed(lease)),
                Step::Held { left } => failure = AcquireError::Contended { retry_after: left },
                Step::Late => failure = AcquireError::Late,
                Step::Failed(error) if !error.is_passing() => {
                    return Err(attempt.fail(AcquireError::Refused(error), AcquireError::outcome));
                }
                Step::Failed(error) => failure = AcquireError::Unavailable(error),
                Step::Queued => match attempt.turn(deadline).await {
                    // A queue calls its waiters by itself: no wait of ours, which would leave the lock idle.
                    Ok(()) => {
                        failure = AcquireError::Contended { retry_after: None };
                        now = self.runtime().now();
                        if now >= deadline {
                            break;
                        }
                        continue;
                    }
                    Err(error) => failure = AcquireError::Unavailable(error),
                },
                Step::Cut => break,
            }
            let until = self.next_retry(retry, failure.retry_after()).min(deadline);
            match failure {
                AcquireError::Contended { .. } => attempt.freed(until).await,
                _ => self.runtime().sleep_until(until).await,
            }
            now = self.runtime().now();
            if now >= deadline {
                break;
            }
            attempt.change_owner();
        }
        Err(attempt.fail(failure, AcquireError::outcome))
    }

    /// Asks for the lease on `key` once, for at most [`Options::request_timeout`].
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Held`] if another owner holds it, with the time left to it.
    pub async fn try_acquire(&self, key: &LockKey) -> Result<Handle<B>, TryAcquireError> {
        let mut attempt = Attempt::begin(self, key);
        let now = attempt.started();
        let error = match attempt.step(now, now + self.options().request_timeout).await {
            Step::Granted(lease) => return Ok(attempt.succeed(lease)),
            Step::Held { left } => TryAcquireError::Held { retry_after: left },
            Step::Queued => TryAcquireError::Held { retry_after: None },
            Step::Late => TryAcquireError::Late,
            Step::Failed(error) => TryAcquireError::Backend(error),
            Step::Cut => TryAcquireError::Backend(BackendError::NoAnswer),
        };
        Err(attempt.fail(error, TryAcquireError::outcome))
    }

    /// What the lock was told.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// The lock server.
    pub fn backend(&self) -> &B {
        &self.0.backend
    }

    pub(crate) fn runtime(&self) -> &B::Runtime {
        self.0.backend.runtime()
    }

    pub(crate) fn terms(&self) -> Terms {
        self.0.terms
    }

    pub(crate) fn meters(&self) -> &Meters {
        &self.0.meters
    }

    /// When the retry numbered `retry` is due at the latest.
    fn next_retry(&self, retry: u32, left: Option<Duration>) -> Instant {
        let wait = wait_for_holder(self.backoff(retry), left);
        self.runtime().now() + wait
    }

    /// A wait drawn for the retry numbered `retry`.
    pub(crate) fn backoff(&self, retry: u32) -> Duration {
        let mut random = [0; 8];
        self.runtime().fill_random(&mut random);
        self.options().backoff.wait(retry, random)
    }
}

impl<B: Backend> Clone for Lock<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Backend> fmt::Debug for Lock<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("options", self.options()).finish_non_exhaustive()
    }
}
