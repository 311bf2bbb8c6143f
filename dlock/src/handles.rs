//! The handles of several leases that were acquired together.

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dlock_runtime::Instant;
use futures_util::future::{BoxFuture, join_all, select_all};

use crate::backend::{Backend, Released};
use crate::error::{KeyLostError, LostError, ReleaseError};
use crate::handle::Handle;
use crate::held::Held;
use crate::key::LockKey;
use crate::token::FencingToken;
use crate::watchdog::{self, Cap};

/// The leases on several keys, which [`Lock::acquire_all`](crate::Lock::acquire_all) has acquired; one at
/// least. They are held together: once one of them is lost, the work must stop.
///
/// Each key has a fencing token of its own. Send with each write the token of the key that guards it.
///
/// # Drop
///
/// If it is dropped, all leases are released in the background, newest first, as [`Handle`] says.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |lock, _, key| {
/// use std::time::Duration;
///
/// use dlock::LockKey;
///
/// let other = LockKey::new("orders", "41")?;
/// let keys = [key.clone(), other.clone()];
/// let handles = lock.acquire_all(&keys, lock.deadline_in(Duration::from_secs(5))).await?;
/// // In the order in which they were acquired.
/// let held: Vec<_> = handles.fences().map(|(key, _)| key.name()).collect();
/// assert_eq!(held, ["orders:41", "orders:42"]);
/// assert!(handles.fence(&other).is_some() && handles.is_valid());
/// assert_eq!(handles.release().await?.len(), 2);
/// # Ok(()) });
/// ```
pub struct Handles<B: Backend>(Vec<Handle<B>>);

impl<B: Backend> Handles<B> {
    /// Begins without a lease, for an acquire that adds them in the order of their keys.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, handle: Handle<B>) {
        self.0.push(handle);
    }

    /// Returns the handles in the order in which their keys were acquired, that of the keys.
    pub fn all(&self) -> &[Handle<B>] {
        &self.0
    }

    /// Returns the fencing token of `key`; `None` if the key is not among those that were acquired. Send it
    /// with every write that this key protects, and with no other.
    pub fn fence(&self, key: &LockKey) -> Option<FencingToken> {
        let found = self.0.binary_search_by(|handle| handle.key().cmp(key)).ok()?;
        self.0.get(found).map(Handle::fence)
    }

    /// Returns each key with its fencing token, in the order of the keys.
    pub fn fences(&self) -> impl Iterator<Item = (&LockKey, FencingToken)> {
        self.0.iter().map(|handle| (handle.key(), handle.fence()))
    }

    /// Returns how long all leases may still be trusted: the least of [`Handle::remaining`]; zero once one of
    /// them is lost.
    pub fn remaining(&self) -> Duration {
        self.0.iter().map(Handle::remaining).min().unwrap_or_default()
    }

    /// Returns whether all leases may still be trusted: see [`Handles::remaining`].
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns when the first validity ends, on the runtime's clock, unless the leases are renewed before.
    pub fn valid_until(&self) -> Instant {
        self.0.iter().map(Handle::valid_until).min().unwrap_or(Instant::MAX)
    }

    /// Completes once one of the leases may no longer be trusted, with its key: see [`Handle::lost`].
    pub fn lost(&self) -> impl Future<Output = LockKey> + Send + use<B> {
        let over = |handle: &Handle<B>| {
            let (lost, key) = (handle.lost(), handle.key().clone());
            Box::pin(async move {
                lost.await;
                key
            })
        };
        // There is one lease at least, so there is a first one.
        let first = select_all(self.0.iter().map(over));
        async move { first.await.0 }
    }

    /// Returns whether one of the leases has little validity left: see [`Handle::is_low`].
    pub fn is_low(&self) -> bool {
        self.0.iter().any(Handle::is_low)
    }

    /// Completes once the validity of one of the leases is low: see [`Handle::low`].
    pub fn low(&self) -> impl Future<Output = ()> + Send + use<B> {
        let first = select_all(self.0.iter().map(|handle| Box::pin(handle.low())));
        async move {
            first.await;
        }
    }

    /// Runs `work` while all leases are held, and renews each of them every third of its TTL, as
    /// [`Handle::while_held`] does with one. When the first of them is lost, or the cap is reached, `work` is
    /// dropped at its current await point.
    ///
    /// # Errors
    ///
    /// [`KeyLostError`] names the key, if `work` was dropped.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// use std::time::Duration;
    ///
    /// use dlock::{Cap, LockKey, LostError};
    ///
    /// let keys = [key, LockKey::new("orders", "41")?];
    /// let handles = lock.acquire_all(&keys, lock.deadline_in(Duration::from_secs(5))).await?;
    /// let hangs = std::future::pending::<()>();
    /// let ended = handles.while_held(Cap(Duration::from_millis(5)), hangs).await.unwrap_err();
    /// assert_eq!((ended.key.name(), ended.source), ("orders:41", LostError::Capped));
    /// # Ok(()) });
    /// ```
    pub async fn while_held<F: Future>(&self, cap: Cap, work: F) -> Result<F::Output, KeyLostError> {
        let mut renewals = Renewals::default();
        self.0.iter().for_each(|handle| renewals.add(handle.held(), cap));
        renewals.beside(work).await
    }

    /// Renews all leases, each in a task of its own, until it is lost, released or dropped, or the cap is
    /// reached: see [`Handle::keep_alive`]. The others are renewed on if one is lost: check
    /// [`Handles::lost`] or [`Handles::is_valid`].
    pub fn keep_alive(&self, cap: Cap) {
        self.0.iter().for_each(|handle| handle.keep_alive(cap));
    }

    /// Ends all leases, newest first, and returns how each ended, in this order. The renewals of all stop at
    /// once, and no release waits for the answer to another one: together they take as long as
    /// [`Handle::release`]. If this future is dropped before its end, the releases go on in the background.
    ///
    /// # Errors
    ///
    /// [`ReleaseAllError`] lists each key whose release the server did not confirm in time, and how the
    /// others ended. These releases go on in the background for at most one TTL each.
    pub async fn release(mut self) -> Result<Vec<(LockKey, Released)>, ReleaseAllError> {
        let handles = mem::take(&mut self.0);
        for handle in handles.iter().rev() {
            handle.held().begin_release(handle.held().now());
        }
        let end = |handle: Handle<B>| async move { (handle.key().clone(), handle.release().await) };
        let (mut released, mut unconfirmed) = (Vec::new(), Vec::new());
        for (key, ended) in join_all(handles.into_iter().rev().map(end)).await {
            match ended {
                Ok(how) => released.push((key, how)),
                Err(error) => unconfirmed.push((key, error)),
            }
        }
        match unconfirmed.is_empty() {
            true => Ok(released),
            false => Err(ReleaseAllError { unconfirmed, released }),
        }
    }

    /// Drops the handles without a release: each lease ends by its TTL, as [`Handle::leave`] says.
    pub fn leave(mut self) {
        mem::take(&mut self.0).into_iter().for_each(Handle::leave);
    }
}

impl<B: Backend> Drop for Handles<B> {
    fn drop(&mut self) {
        // Newest first: who waits for an earlier key then finds the later ones free.
        while let Some(handle) = self.0.pop() {
            drop(handle);
        }
    }
}

impl<B: Backend> fmt::Debug for Handles<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

/// Why [`Handles::release`] is not sure that all leases have ended: the server did not confirm the
/// release of some keys. Nothing need be done: each of these leases ends by its TTL at the latest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("of several keys, {} may still be locked{}", unconfirmed.len(), keys_of(unconfirmed))]
#[non_exhaustive]
pub struct ReleaseAllError {
    /// The keys whose release was not confirmed, newest grant first.
    pub unconfirmed: Vec<(LockKey, ReleaseError)>,
    /// The keys whose release the server answered, newest grant first.
    pub released: Vec<(LockKey, Released)>,
}

/// Lists the keys with the reasons, each behind a separator.
fn keys_of(unconfirmed: &[(LockKey, ReleaseError)]) -> String {
    unconfirmed.iter().map(|(key, error)| format!("; {key}: {error}")).collect()
}

/// The renewals of several leases, which run as long as the future beside them is polled.
pub(crate) struct Renewals<B: Backend>(Vec<Watched<B>>);

struct Watched<B: Backend> {
    held: Arc<Held<B>>,
    watch: BoxFuture<'static, LostError>,
}

impl<B: Backend> Renewals<B> {
    /// Adds a lease, to be renewed until `cap`, which counts from its grant.
    pub(crate) fn add(&mut self, held: &Arc<Held<B>>, cap: Cap) {
        let renewed = Arc::clone(held);
        let watch = Box::pin(async move { watchdog::watch(&renewed, cap).await });
        self.0.push(Watched { held: Arc::clone(held), watch });
    }

    /// Runs `work` beside the renewals until one of the leases is lost or reaches its cap.
    pub(crate) async fn beside<F: Future>(&mut self, work: F) -> Result<F::Output, KeyLostError> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            // Checks the clock first: after a pause the work must not run on before the loss is noticed.
            for lease in &self.0 {
                lease.held.check().map_err(|source| lease.lost(source))?;
            }
            for lease in &mut self.0 {
                if let Poll::Ready(source) = lease.watch.as_mut().poll(cx) {
                    return Poll::Ready(Err(lease.lost(source)));
                }
            }
            work.as_mut().poll(cx).map(Ok)
        })
        .await
    }
}

impl<B: Backend> Watched<B> {
    fn lost(&self, source: LostError) -> KeyLostError {
        KeyLostError { key: self.held.claim().key.clone(), source }
    }
}

impl<B: Backend> Default for Renewals<B> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
