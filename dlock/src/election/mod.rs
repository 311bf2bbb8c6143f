//! Leader election: of several processes one leads, and the others, or anybody else, see which.
//!
//! A leader is the holder of a lock on a key, and its term is the fencing token of the lease: a number that
//! grows from leader to leader. The lease is renewed for as long as the leader leads. A leader that can't
//! renew stops before another one can begin, by its own clock ([`Leadership::lead`]). It can't stop if its
//! process is paused. So each write must carry the term, and the resource must refuse a term below the
//! highest that it has seen.
//!
//! Source: the terms are those of Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm"
//! (2014), of which an election here has only the numbering; the lease is that of Gray and Cheriton, "Leases"
//! (1989).
//!
//! # Example
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
//! # example::run(async |lock, _, key| {
//! use std::time::Duration;
//!
//! use dlock::Cap;
//! use dlock::election::Election;
//!
//! // No term lasts for longer than an hour: a leader that hangs is replaced then.
//! let election = Election::new(lock.clone(), key, Cap(Duration::from_secs(3600)))?;
//! let leadership = election.campaign(lock.deadline_in(Duration::from_secs(60))).await?;
//! let written = leadership.lead(async { format!("written in term {}", leadership.term()) }).await?;
//! assert_eq!(written, "written in term 1");
//!
//! let leader = election.observe().next().await?;
//! assert_eq!(leader.term, leadership.term());
//! leadership.resign().await?;
//! # Ok(()) });
//! ```
//!
//! # What it does not promise
//!
//! - That at most one process acts as leader at a time. A paused one acts on when it wakes up, until its next
//!   await point: only the term in its writes stops it.
//! - That an observer sees every term: a short one may pass between two of its looks. It sees each at most
//!   once, in growing order.
//! - That the leader an observer sees still leads.
//! - On Redis and Redlock, terms grow only while the servers keep the writes that they have acknowledged: see
//!   [`FencingToken`](crate::FencingToken). After a failover that lost some, an observer shows no new leader
//!   until the terms are above the highest that it has seen.
//! - On Redlock, a candidate with the votes of a majority has no term until it has told a majority. If the
//!   term before was not seen, an observer may see it now, under the name of that candidate.

// terms.rs decides which terms an observer shows (pure), observer.rs asks; leadership.rs is a term of this
// process.

mod leadership;
mod observer;
mod terms;

use std::fmt;

use dlock_runtime::Instant;

pub use self::leadership::Leadership;
pub use self::observer::Observer;
pub use self::terms::Term;
use crate::backend::Backend;
use crate::error::AcquireError;
use crate::key::LockKey;
use crate::lock::Lock;
use crate::options::OptionsError;
use crate::watchdog::Cap;

/// An election on one key. All candidates must use the same key, and lock it by elections only.
pub struct Election<B: Backend> {
    lock: Lock<B>,
    key: LockKey,
    cap: Cap,
}

impl<B: Backend> Election<B> {
    /// Creates an election whose terms are leases of `lock` on `key`, renewed until `cap`, which counts from
    /// the beginning of a term. Sends nothing. [`Options::instance`](crate::Options::instance) names this
    /// process to observers.
    ///
    /// # Errors
    ///
    /// [`OptionsError::Leaders`] for a lock with several permits.
    pub fn new(lock: Lock<B>, key: LockKey, cap: Cap) -> Result<Self, OptionsError> {
        match lock.options().permits {
            1 => Ok(Self { lock, key, cap }),
            permits => Err(OptionsError::Leaders { permits }),
        }
    }

    /// Waits until this process is the leader, or `deadline` passes. From then on the lease is renewed in the
    /// background, every third of its TTL.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`]; [`AcquireError::Taken`] if another one leads until the deadline.
    pub async fn campaign(&self, deadline: Instant) -> Result<Leadership<B>, AcquireError> {
        let handle = self.lock.acquire(&self.key, deadline).await?;
        handle.keep_alive(self.cap);
        Ok(Leadership::new(handle))
    }

    /// Observes the election, as a candidate or not. Sends nothing before [`Observer::next`].
    pub fn observe(&self) -> Observer<B> {
        Observer::new(self.lock.context().clone(), self.key.clone())
    }

    /// Returns the key.
    pub fn key(&self) -> &LockKey {
        &self.key
    }
}

impl<B: Backend> Clone for Election<B> {
    fn clone(&self) -> Self {
        Self { lock: self.lock.clone(), key: self.key.clone(), cap: self.cap }
    }
}

impl<B: Backend> fmt::Debug for Election<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("key", &self.key.name()).finish_non_exhaustive()
    }
}
