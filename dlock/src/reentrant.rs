//! The reentrant lock: sections of one scope nest in each other and share one lease.
//!
//! Source of the rule that the token stays while nested: Redisson's `RFencedLock` increments it with each
//! nested acquire, so that a resource that has seen the inner token refuses the outer section.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use dlock_runtime::{Instant, Runtime, probes, reached, timeout_at};

use crate::backend::{Backend, Released};
use crate::error::{AcquireError, LostError, ReleaseError};
use crate::handle::Handle;
use crate::key::LockKey;
use crate::lock::Lock;
use crate::nesting::{Nesting, Turn};
use crate::sync::{Changes, Guarded};

impl<B: Backend> Lock<B> {
    /// Begins a scope, within which the lock is reentrant: an acquire of a key that the scope holds shares
    /// the lease instead of waiting for it. Sends nothing.
    ///
    /// Make one scope for each task or request, and pass it down the calls by reference. Another scope of the
    /// same process waits like a stranger.
    pub fn scope(&self) -> Scope<B> {
        let shared = Shared { lock: self.clone(), nesting: Guarded::default(), changed: Changes::default() };
        Scope(Arc::new(shared))
    }
}

/// One holder that may acquire a key again while it holds it: see [`Lock::scope`].
///
/// A scope is not `Clone`. Tasks that share one, by reference or in an `Arc`, are one holder: they are inside
/// the critical section of a key at the same time, with one token, and the lock does not keep them apart.
/// Share it among the parts of one piece of work, and not among pieces that exclude each other.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |lock, _, key| {
/// use std::time::Duration;
///
/// use dlock::Left;
///
/// let scope = lock.scope();
/// let outer = scope.acquire(&key, lock.deadline_in(Duration::from_secs(5))).await?;
/// let inner = scope.acquire(&key, lock.deadline_in(Duration::from_secs(5))).await?;
/// assert_eq!((inner.fence(), inner.depth()), (outer.fence(), 2));
/// // The inner section leaves; the outer one still holds the lock, with the same token.
/// assert_eq!(inner.leave().await?, Left::Nested { depth: 1 });
/// assert!(outer.is_valid());
/// assert!(matches!(outer.leave().await?, Left::Released(_)));
/// # Ok(()) });
/// ```
pub struct Scope<B: Backend>(Arc<Shared<B>>);

struct Shared<B: Backend> {
    lock: Lock<B>,
    nesting: Guarded<Nesting<LockKey, Handle<B>>>,
    /// Wakes acquires that wait for the one in progress.
    changed: Changes,
}

impl<B: Backend> Scope<B> {
    /// Enters a section on `key`. The first section acquires the lease, until `deadline` at the latest; a
    /// nested one shares it, with its token and its validity, and sends nothing. Of several acquires at once,
    /// one asks the server, and the others wait for its answer.
    ///
    /// # Errors
    ///
    /// [`EnterError::Lost`] if an outer section has lost the lease: it is never acquired anew under a section
    /// that believes in it. [`EnterError::Acquire`] and [`EnterError::Busy`] if there was no lease until the
    /// deadline.
    pub async fn acquire(&self, key: &LockKey, deadline: Instant) -> Result<Entered<B>, EnterError> {
        let Self(shared) = self;
        let lost = |source| EnterError::Lost { key: key.clone(), source };
        loop {
            let ended = shared.changed.next();
            let turn = shared.nesting.lock().begin(key, |handle| handle.held().check());
            let turn = turn.inspect_err(|_| reached!(shared.runtime(), nested_in_a_lost_lease));
            match turn.map_err(lost)? {
                Turn::Acquire => return shared.acquire(key, deadline).await,
                Turn::Nested(lease) => return Ok(Entered::new(shared, lease)),
                Turn::Wait => {
                    let waited = timeout_at(shared.runtime(), deadline, ended).await;
                    waited.map_err(|_| EnterError::Busy { key: key.clone() })?;
                }
            }
        }
    }

    /// Returns the number of sections that are open on `key`.
    pub fn depth(&self, key: &LockKey) -> usize {
        self.0.nesting.lock().depth(key)
    }
}

impl<B: Backend> Shared<B> {
    /// Acquires the lease of a first section. Wakes the waiting sections, even if this future is dropped.
    async fn acquire(self: &Arc<Self>, key: &LockKey, deadline: Instant) -> Result<Entered<B>, EnterError> {
        let turn = InProgress { shared: self, key };
        let handle = self.lock.acquire(key, deadline).await?;
        let lease = self.nesting.lock().acquired(key.clone(), handle);
        drop(turn);
        Ok(Entered::new(self, lease))
    }

    fn runtime(&self) -> &B::Runtime {
        self.lock.backend().runtime()
    }
}

/// The acquire of a first section. Its end wakes the others: they share its lease, or acquire in turn.
struct InProgress<'a, B: Backend> {
    shared: &'a Shared<B>,
    key: &'a LockKey,
}

impl<B: Backend> Drop for InProgress<'_, B> {
    fn drop(&mut self) {
        self.shared.nesting.lock().failed(self.key);
        self.shared.changed.announce();
    }
}

/// A section that a [`Scope`] has entered. It gives access to the [`Handle`] of the lease, which all open
/// sections of the scope on this key share.
///
/// [`Entered::leave`] ends the section; the last one to leave releases the lease. A section that is dropped
/// counts as left, and if it is the last, the lease is released in the background, as by a dropped
/// [`Handle`].
///
/// [`Handle::keep_alive`] and [`Handle::renew_for`] of a nested section act on the shared lease.
pub struct Entered<B: Backend> {
    shared: Arc<Shared<B>>,
    lease: Arc<Handle<B>>,
    is_left: bool,
}

impl<B: Backend> Entered<B> {
    fn new(shared: &Arc<Shared<B>>, lease: Arc<Handle<B>>) -> Self {
        Self { shared: Arc::clone(shared), lease, is_left: false }
    }

    /// Returns the number of sections that are open on the key, this one included.
    pub fn depth(&self) -> usize {
        self.shared.nesting.lock().depth(self.lease.key())
    }

    /// Leaves the section. The last one to leave releases the lease, and this says how that ended; before,
    /// nothing is sent. Sections may leave in any order.
    ///
    /// # Errors
    ///
    /// As [`Handle::release`], for the last section.
    pub async fn leave(mut self) -> Result<Left, ReleaseError> {
        match self.close() {
            (depth, None) => Ok(Left::Nested { depth }),
            (_, Some(lease)) => lease.release_shared().await.map(Left::Released),
        }
    }

    /// Closes the section once; returns the number of those that stay, and the lease if it was the last one.
    fn close(&mut self) -> (usize, Option<Arc<Handle<B>>>) {
        self.is_left = true;
        let mut nesting = self.shared.nesting.lock();
        let last = nesting.leave(self.lease.key());
        (nesting.depth(self.lease.key()), last)
    }
}

impl<B: Backend> Deref for Entered<B> {
    type Target = Handle<B>;

    fn deref(&self) -> &Handle<B> {
        &self.lease
    }
}

impl<B: Backend> Drop for Entered<B> {
    fn drop(&mut self) {
        if !self.is_left {
            // The last handle of the lease is dropped with this section, and releases it in the background.
            drop(self.close());
        }
    }
}

/// The result of [`Entered::leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Left {
    /// Other sections of the scope are still open: the lease was not released.
    Nested {
        /// Their number.
        depth: usize,
    },
    /// The last section left: the lease was released, and ended so.
    Released(Released),
}

/// Why [`Scope::acquire`] did not enter a section.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnterError {
    /// The lease was not acquired.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// An outer section has lost the lease, or its validity is over. Nothing was sent.
    #[error("no section inside an outer one on {key}: {source}")]
    Lost {
        /// The key.
        key: LockKey,
        /// The reason.
        source: LostError,
    },
    /// Another acquire of the scope had no answer until the deadline.
    #[error(
        "another acquire of {key} in this scope was still in progress at the deadline: wait longer, or do the \
         work later"
    )]
    Busy {
        /// The key.
        key: LockKey,
    },
}

impl<B: Backend> fmt::Debug for Scope<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl<B: Backend> fmt::Debug for Entered<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").field("lease", &self.lease).field("depth", &self.depth()).finish()
    }
}

probes! {
    /// A nested section was refused, since its scope had lost the lease.
    reached nested_in_a_lost_lease;
}
