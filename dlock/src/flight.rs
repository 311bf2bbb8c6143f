//! Single-flight: of many callers that need one result, one computes it, and the others wait for its result
//! or its failure.
//!
//! Source of the name: the package `singleflight` of Go, which does so within one process, as groupcache did
//! before. Between processes a lock chooses the caller that computes, and a store keeps the result. The
//! store's fence refuses the result of a process that paused and was replaced.

use std::error::Error;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, probes, reached, sometimes};
use futures_util::future::{Either, select};

use crate::backend::Backend;
use crate::error::{AcquireError, LostError};
use crate::handle::Handle;
use crate::key::LockKey;
use crate::lock::Lock;
use crate::options::OptionsError;
use crate::token::{FencingToken, Owner};
use crate::watchdog::Cap;

/// A result that a computation stored: a value, or the text of its failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightResult {
    /// The fencing token of the lease under which it was computed.
    pub token: FencingToken,
    /// The value, or the text of the failure.
    pub value: Result<Vec<u8>, String>,
}

/// The answer of a store to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It keeps the result.
    Accepted,
    /// It refused the result: it has seen a higher token, of a process that replaced this one.
    Stale,
}

/// The results of flights, one for each key: that with the highest token.
///
/// An implementation checks tokens as a guarded resource does: judge and write in one step, and keep the
/// highest token as durably as the result. The crate `fencepost-resource` has one over its client.
pub trait Results: Send + Sync {
    /// Why the store failed; it may have done what was asked.
    type Error: Error + Send + Sync + 'static;

    /// Returns the result of `key`, if there is one.
    fn get(
        &self,
        key: &LockKey,
        deadline: Instant,
    ) -> impl Future<Output = Result<Option<FlightResult>, Self::Error>> + Send;

    /// Returns the result of `key` as [`Results::get`] does, for the holder of `token`, and refuses from then
    /// on each result with a lower token. Returns [`Claimed::Stale`] if a higher one has been seen.
    fn claim(
        &self,
        key: &LockKey,
        token: FencingToken,
        owner: &Owner,
        deadline: Instant,
    ) -> impl Future<Output = Result<Claimed, Self::Error>> + Send;

    /// Stores a result of `owner`, unless a higher token has been seen.
    fn put(
        &self,
        key: &LockKey,
        result: &FlightResult,
        owner: &Owner,
        deadline: Instant,
    ) -> impl Future<Output = Result<Stored, Self::Error>> + Send;
}

/// The answer to [`Results::claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The token is the highest. The result that is stored, if any.
    Yes(Option<FlightResult>),
    /// A higher token has been seen.
    Stale,
}

/// The results that a call of [`SingleFlight::run`] accepts from others.
///
/// A failure is accepted only if its token is above that of the result which was stored when the call began:
/// it is shared with the callers that wait for it, and with no later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// Any value. It is computed once, and again only after a failure.
    Any,
    /// A value whose token is above this one. Give the token of a value that is known to be out of date.
    Above(FencingToken),
    /// A value whose token is above that of the result which was stored when the call began. A computation
    /// that was in progress then counts, as in Go's `singleflight`: its value may come from data that it had
    /// read before this call.
    SinceCall,
}

/// The outcome of [`SingleFlight::run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The value or the failure, with its token.
    pub result: FlightResult,
    /// True if another call computed it.
    pub is_shared: bool,
}

/// Why a call of [`SingleFlight::run`] has neither a value nor the failure of a computation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlightError<E> {
    /// Until the deadline there was neither a result nor the lock to compute it.
    #[error("no result of others until the deadline, and {0}")]
    Acquire(#[source] AcquireError),
    /// This call computed, and lost its lease on the way; no result of the process that replaced it was there
    /// yet.
    #[error("the computation was cut short, and no one has stored another result yet: {0}; call again")]
    Lost(#[source] LostError),
    /// This call's result was refused, since a higher token has been seen, and the result of the process that
    /// replaced it is not there yet.
    #[error("the result with token {token} came too late, another process computes: call again")]
    Replaced {
        /// The token of the result that was refused.
        token: FencingToken,
    },
    /// The store of results failed.
    #[error("the store of results failed: {0}")]
    Store(#[source] E),
}

/// Computes a result once for all callers of all processes: see [`SingleFlight::run`].
pub struct SingleFlight<B: Backend, S> {
    lock: Lock<B>,
    results: S,
    cap: Cap,
}

impl<B: Backend, S: Results> SingleFlight<B, S> {
    /// Creates a flight of computations that may take until `cap`, under `lock`, whose results are in
    /// `results`. The lock must guard nothing else by the same keys. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`OptionsError::Flights`] for a lock with several permits.
    pub fn new(lock: Lock<B>, results: S, cap: Cap) -> Result<Self, OptionsError> {
        match lock.options().permits {
            1 => Ok(Self { lock, results, cap }),
            permits => Err(OptionsError::Flights { permits }),
        }
    }

    /// Returns a fresh result of `key`, or computes it.
    ///
    /// 1. It looks for a result that `fresh` accepts, and returns it.
    /// 2. It requests the lock, and looks again at the intervals of [`Options::backoff`] while it waits. The
    ///    result of the holder ends the wait; if the holder crashes, its lease ends, and this call may get
    ///    the lock.
    /// 3. With the lock it claims its token in the store, and looks again: the last holder may have stored a
    ///    result in between. From then on the store refuses the result of a holder that was replaced.
    /// 4. It runs `compute` while the lease is renewed, stores the value or the failure with the token, and
    ///    releases the lock. If the lease is lost, `compute` is dropped at its current await point.
    ///
    /// [`Options::backoff`]: crate::Options::backoff
    ///
    /// # What it does not promise
    ///
    /// `compute` runs more than once if its process crashes, pauses for longer than its lease, or can't reach
    /// the store: only its result is stored once. Effects of `compute` elsewhere need a fence of their own.
    ///
    /// # Errors
    ///
    /// [`FlightError`]. A failure of `compute` is no error here: it is the result, for all who waited.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # mod results { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/results.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use std::time::Duration;
    ///
    /// use dlock::Cap;
    /// use dlock::flight::{Fresh, SingleFlight};
    ///
    /// let cap = Cap(Duration::from_secs(60));
    /// let flight = SingleFlight::new(lock.clone(), results::InMemory::default(), cap)?;
    /// let report = async |_token| Ok::<_, String>(b"42 orders".to_vec());
    /// let deadline = lock.deadline_in(Duration::from_secs(5));
    /// let first = flight.run(&key, Fresh::Any, deadline, report).await?;
    /// let second = flight.run(&key, Fresh::Any, deadline, report).await?;
    /// assert!(!first.is_shared && second.is_shared);
    /// assert_eq!(first.result, second.result);
    /// # Ok(()) });
    /// ```
    pub async fn run<E, F>(
        &self,
        key: &LockKey,
        fresh: Fresh,
        deadline: Instant,
        compute: impl FnOnce(FencingToken) -> F,
    ) -> Result<Flight, FlightError<S::Error>>
    where
        E: fmt::Display,
        F: Future<Output = Result<Vec<u8>, E>>,
    {
        let before = self.results.get(key, deadline).await.map_err(FlightError::Store)?;
        let wanted = Wanted::new(fresh, before.as_ref().map(|result| result.token));
        if let Some(result) = before.filter(|result| wanted.accepts(result)) {
            return Ok(shared(result));
        }
        let handle = {
            let (acquire, others) = (self.lock.acquire(key, deadline), self.awaited(key, wanted, deadline));
            match select(pin!(acquire), pin!(others)).await {
                Either::Left((acquired, _)) => acquired.map_err(FlightError::Acquire)?,
                Either::Right((result, _)) => return Ok(shared(result)),
            }
        };
        let flown = self.compute(key, wanted, &handle, compute).await;
        // A release without an answer goes on in the background; the result is stored.
        let _ = handle.release().await;
        flown
    }

    /// Returns the instant `timeout` from now on the lock's clock: see [`Lock::deadline_in`].
    pub fn deadline_in(&self, timeout: Duration) -> Instant {
        self.lock.deadline_in(timeout)
    }

    /// Looks for a result of others until there is one. An error of the store is no reason to give up before
    /// the acquire does.
    async fn awaited(&self, key: &LockKey, wanted: Wanted, deadline: Instant) -> FlightResult {
        let runtime = self.lock.backend().runtime();
        for retry in 0u32.. {
            runtime.sleep_until(runtime.now() + self.lock.context().backoff(retry)).await;
            if let Ok(Some(result)) = self.results.get(key, deadline).await
                && wanted.accepts(&result)
            {
                reached!(runtime, result_of_others_awaited);
                return result;
            }
        }
        std::future::pending().await
    }

    /// Looks again under the lock, computes and stores.
    async fn compute<E, F>(
        &self,
        key: &LockKey,
        wanted: Wanted,
        handle: &Handle<B>,
        compute: impl FnOnce(FencingToken) -> F,
    ) -> Result<Flight, FlightError<S::Error>>
    where
        E: fmt::Display,
        F: Future<Output = Result<Vec<u8>, E>>,
    {
        let (runtime, token) = (self.lock.backend().runtime(), handle.fence());
        let work = async {
            let claimed = self.results.claim(key, token, handle.owner(), self.soon()).await;
            match claimed.map_err(FlightError::Store)? {
                Claimed::Stale => return Ok((None, Stored::Stale)),
                Claimed::Yes(Some(result)) if wanted.accepts(&result) => {
                    reached!(runtime, result_found_under_the_lock);
                    return Ok((Some(shared(result)), Stored::Accepted));
                }
                Claimed::Yes(_) => {}
            }
            let value = compute(token).await.map_err(|failure| failure.to_string());
            let result = FlightResult { token, value };
            let stored = self.results.put(key, &result, handle.owner(), self.soon()).await;
            let stored = stored.map_err(FlightError::Store)?;
            Ok((Some(Flight { result, is_shared: false }), stored))
        };
        match handle.while_held(self.cap, work).await {
            Ok(Ok((Some(flight), Stored::Accepted))) => Ok(flight),
            Ok(Ok((_, Stored::Accepted | Stored::Stale))) => {
                reached!(runtime, late_result_refused);
                self.of_successor(key, wanted, token, FlightError::Replaced { token }).await
            }
            Ok(Err(error)) => Err(error),
            Err(lost) => self.of_successor(key, wanted, token, FlightError::Lost(lost)).await,
        }
    }

    /// Returns the result of the process that replaced this one, or `error` if there is none yet. It is this
    /// call's own, with its `token`, if the lease ended after the store had accepted it.
    async fn of_successor(
        &self,
        key: &LockKey,
        wanted: Wanted,
        token: FencingToken,
        error: FlightError<S::Error>,
    ) -> Result<Flight, FlightError<S::Error>> {
        let stored = self.results.get(key, self.soon()).await.map_err(FlightError::Store)?;
        let found = stored.filter(|result| wanted.accepts(result));
        let found = found.map(|result| Flight { is_shared: result.token != token, result });
        let is_of_successor = found.as_ref().is_some_and(|flight| flight.is_shared);
        sometimes!(self.lock.backend().runtime(), successor_has_the_result, is_of_successor);
        found.ok_or(error)
    }

    /// Returns the deadline of a request to the store after the acquire: one TTL from now.
    fn soon(&self) -> Instant {
        self.lock.backend().runtime().now() + self.lock.options().ttl
    }
}

fn shared(result: FlightResult) -> Flight {
    Flight { result, is_shared: true }
}

/// The results that a call accepts: those above a token, one for values and one for failures. Pure.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    value_above: Option<FencingToken>,
    failure_above: Option<FencingToken>,
}

impl Wanted {
    /// `before` is the token of the result that was stored when the call began.
    fn new(fresh: Fresh, before: Option<FencingToken>) -> Self {
        let value_above = match fresh {
            Fresh::Any => None,
            Fresh::Above(token) => Some(token),
            Fresh::SinceCall => before,
        };
        Self { value_above, failure_above: before }
    }

    fn accepts(self, result: &FlightResult) -> bool {
        let above = if result.value.is_ok() { self.value_above } else { self.failure_above };
        Some(result.token) > above
    }
}

impl<B: Backend, S> fmt::Debug for SingleFlight<B, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").field("cap", &self.cap).finish_non_exhaustive()
    }
}

probes! {
    /// A call that waited for the lock found the result of another one.
    reached result_of_others_awaited;
    /// A call that got the lock found a result which the holder before it had stored.
    reached result_found_under_the_lock;
    /// The result of a process that had been replaced was refused.
    reached late_result_refused;
    /// A process that had been replaced found the result of its successor.
    sometimes successor_has_the_result;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn result(token: u64, is_ok: bool) -> FlightResult {
        let value = if is_ok { Ok(Vec::new()) } else { Err(String::new()) };
        FlightResult { token: FencingToken::new(token).unwrap(), value }
    }

    proptest! {
        #[test]
        fn a_failure_is_shared_only_with_calls_that_began_before_it(
            before in prop::option::of(1..50u64), known in 1..50u64, token in 1..50u64, choice in 0..3u8,
        ) {
            let known = FencingToken::new(known).unwrap();
            let fresh = [Fresh::Any, Fresh::Above(known), Fresh::SinceCall][usize::from(choice)];
            let wanted = Wanted::new(fresh, before.and_then(FencingToken::new));
            prop_assert_eq!(wanted.accepts(&result(token, false)), Some(token) > before);
        }

        #[test]
        fn a_value_is_accepted_above_the_token_of_its_rule(
            before in prop::option::of(1..50u64), known in 1..50u64, token in 1..50u64,
        ) {
            let above = FencingToken::new(known).unwrap();
            let accepts = |fresh| {
                Wanted::new(fresh, before.and_then(FencingToken::new)).accepts(&result(token, true))
            };
            prop_assert!(accepts(Fresh::Any));
            prop_assert_eq!(accepts(Fresh::Above(above)), token > known);
            prop_assert_eq!(accepts(Fresh::SinceCall), Some(token) > before);
        }
    }
}
