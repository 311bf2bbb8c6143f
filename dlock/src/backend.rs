//! The interface between a lock and a lock server.
//!
//! The lock decides when to send a request, how long to wait and whether a grant is still valid. A backend
//! only sends requests and reports answers: it reads no clock but its runtime's and never decides that a
//! lease is held.
//!
//! There are two families. A server without a queue (Redis, Redlock) answers [`Answer::Taken`], and the lock
//! asks again after a backoff. A server with a queue (etcd, ZooKeeper) answers [`Answer::Queued`], and the
//! lock asks again when [`Acquisition::wait`] returns. A Redis that limits its waiters is between them: it
//! answers [`Answer::Placed`], and keeps the place for as long as the lock asks again.

use std::future::Future;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};

use crate::error::BackendError;
use crate::key::LockKey;
use crate::token::{FencingToken, Owner};

/// A lock server, or several that act as one. Clones are cheap and share its connections.
///
/// # Example
///
/// A lock server in memory, and a lock on it:
///
/// ```
#[doc = include_str!("../doc/memory.rs")]
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let runtime = dlock::TokioRuntime::new(tokio::runtime::Handle::current());
///     let options = dlock::Options::new(std::time::Duration::from_secs(2));
///     let lock = dlock::Lock::new(Memory::new(runtime), options)?;
///     let key = LockKey::new("orders", "42")?;
///     for token in 1..=3 {
///         let handle = lock.try_acquire(&key).await?;
///         assert_eq!(handle.fence().as_u64(), token);
///         handle.release().await?;
///     }
///     Ok(())
/// }
/// ```
pub trait Backend: Clone + Send + Sync + 'static {
    /// The clock, network, scheduler and entropy; the lock uses the same clock.
    type Runtime: Runtime;

    /// One attempt to hold one lease.
    type Acquisition: Acquisition;

    /// Returns the runtime.
    fn runtime(&self) -> &Self::Runtime;

    /// Returns the name of the system, in lower case: the label `system` of the metrics.
    fn system(&self) -> &'static str;

    /// Returns the TTL of the client's session if leases live as long as that session; `None` if a lease that
    /// is neither renewed nor released ends by its own TTL.
    ///
    /// With a session no lease may have a longer TTL. An abandoned lease is then released until the server
    /// confirms it, and [`Handle::leave`](crate::Handle::leave) releases it when its TTL is over.
    fn session_ttl(&self) -> Option<Duration> {
        None
    }

    /// Returns true if it grants [`Claim::permits`] at once. The default is false: a lock with several
    /// permits on this backend is refused.
    fn has_permits(&self) -> bool {
        false
    }

    /// Returns true if it grants a [`Share`] of a lock for readers and a writer. The default is false: such a
    /// lock on this backend is refused.
    fn has_readers(&self) -> bool {
        false
    }

    /// Returns true if it keeps a queue of at most [`QueueLimit::max`] waiters for a lock with `permits`. The
    /// default is false: a lock with a limit of its waiters on this backend is refused.
    fn has_queue(&self, permits: u32) -> bool {
        let _ = permits;
        false
    }

    /// Connects and logs in by `deadline`, and waits until a server has answered; of several independent
    /// servers, a majority. The first request does the same: a program that calls this learns of a wrong
    /// address, password or certificate at its start. The default does nothing.
    ///
    /// # Errors
    ///
    /// [`BackendError`], as of a request.
    fn connect(&self, deadline: Instant) -> impl Future<Output = Result<(), BackendError>> + Send {
        let _ = deadline;
        std::future::ready(Ok(()))
    }

    /// Reads the present holder of `key`, a mutex, with its fencing token; `None` if the key is free, or if
    /// its holder has no token. Token and name are of one moment: they must not be read one after the other.
    ///
    /// The default does not read: an election on this backend can't be observed.
    ///
    /// # Errors
    ///
    /// [`BackendError`], as of a request; [`BackendError::NotTold`] by default.
    fn holder(
        &self,
        key: &LockKey,
        deadline: Instant,
    ) -> impl Future<Output = Result<Option<Holder>, BackendError>> + Send {
        let _ = (key, deadline);
        std::future::ready(Err(BackendError::NotTold { system: self.system() }))
    }

    /// Opens an acquisition for `claim`. Sends nothing.
    fn open(&self, claim: Claim) -> Self::Acquisition;
}

/// One attempt to hold one lease: owns the claim and remembers which requests were sent and not answered.
///
/// Each call ends by its `deadline` and treats a server that has not answered by then as unreachable. The
/// caller may drop the future at any await point: [`Acquisition::needs_cleanup`] must be right even then,
/// so note a request *before* it is sent.
pub trait Acquisition: Send + 'static {
    /// Requests the lease once.
    ///
    /// A second request, after an answer was lost, must return the same grant with the same fencing token if
    /// the server granted the first one, and must keep the place in the queue; but see
    /// [`Acquisition::is_repeatable`].
    fn request(&mut self, deadline: Instant) -> impl Future<Output = Result<Answer, BackendError>> + Send;

    /// Waits until the next request is worthwhile, or until `deadline`: after [`Answer::Queued`] until the
    /// claims ahead may be gone, after [`Answer::Taken`] until the server reports a release, if it reports
    /// releases. It may return too early or, without a queue, too late.
    fn wait(&mut self, deadline: Instant) -> impl Future<Output = Result<(), BackendError>> + Send;

    /// Sets the lease back to its full TTL if this owner still holds it, and changes nothing otherwise. The
    /// full TTL is that of the claim, or the last one given to [`Acquisition::set_ttl`].
    fn renew(&mut self, deadline: Instant) -> impl Future<Output = Result<Renewal, BackendError>> + Send;

    /// Ends the lease if this owner still holds it, and changes nothing otherwise.
    ///
    /// It must not overtake an earlier request of this acquisition, as far as the backend can order them. As
    /// long as an earlier request may still take effect, [`Acquisition::needs_cleanup`] stays true.
    fn release(&mut self, deadline: Instant) -> impl Future<Output = Result<Released, BackendError>> + Send;

    /// Sets the TTL that later renewals request: whole milliseconds, at least one. Sends nothing.
    ///
    /// The default ignores it, which suits leases that live as long as the client's session. The lock trusts
    /// a lease for the TTL set here or for what [`Acquisition::renew`] returns, whichever is shorter.
    fn set_ttl(&mut self, ttl: Duration) {
        let _ = ttl;
    }

    /// Returns the tokens of the other permits, or of the other readers, that were live when the server
    /// granted this one; if the grant was found only later, those of them that were still live then. Empty
    /// for a lock with one permit, which is the default.
    fn beside(&self) -> Vec<FencingToken> {
        Vec::new()
    }

    /// Returns whether the server may have something of this acquisition without the client knowing it, now
    /// or later. The lock then releases it in the background until this returns false.
    fn needs_cleanup(&self) -> bool;

    /// Returns whether [`Acquisition::request`] may be called again after it gave no grant. Otherwise the
    /// lock releases this acquisition and opens another one with an owner token of its own.
    fn is_repeatable(&self) -> bool {
        true
    }
}

/// A request for one lease: its key, its owner, its TTL, whether it needs a fencing token, and the leases
/// beside which it may live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The key to lock.
    pub key: LockKey,
    /// The owner token of this acquisition.
    pub owner: Owner,
    /// The TTL of the lease: whole milliseconds, at least one.
    pub ttl: Duration,
    /// True if the grant must have a fencing token. Otherwise the backend may leave it out if that costs
    /// less.
    pub fenced: bool,
    /// The number of leases that may live on the key at once: one for a mutex.
    pub permits: u32,
    /// The share in a lock for readers and a writer; `None` if the lock is of another kind.
    pub share: Option<Share>,
    /// The limit of the waiters; `None` without one.
    pub queue: Option<QueueLimit>,
}

/// The limit of waiters for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimit {
    /// The most claims that may wait at once, this one included: 0 if it does not wait.
    pub max: u32,
    /// The time for which a server keeps the place of a claim that is not requested again. A server that
    /// knows by other means when a waiter is dead ignores it.
    pub patience: Duration,
}

/// The share of a claim in a lock for readers and a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// For reading, beside other readers.
    Shared,
    /// For writing, alone.
    Exclusive {
        /// The longest time between two requests of a waiting writer. A server without a queue grants no new
        /// reader for this long after each of them, so that the readers before the writer come to an end.
        bars: Duration,
    },
}

impl Claim {
    /// Returns true if the claim is for reading.
    pub fn is_shared(&self) -> bool {
        self.share == Some(Share::Shared)
    }
}

/// The holder of a key, as a lock server names it to those who only read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The fencing token of its grant.
    pub token: FencingToken,
    /// The part of its owner token that may be shown: see [`Owner::prefix`]. The rest suffices to release the
    /// lock, and stays in the backend.
    pub name: String,
}

/// A lock server's answer to [`Acquisition::request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The server granted the lease.
    Granted {
        /// Its fencing token.
        token: FencingToken,
        /// A reading of the client's clock from before the granted request was sent.
        since: Instant,
        /// The shortest time for which the lease lives, counted from `since`.
        left: Duration,
    },
    /// The server granted the lease without a fencing token. Only for a claim that demands none.
    Unfenced {
        /// As of [`Answer::Granted`].
        since: Instant,
        /// As of [`Answer::Granted`].
        left: Duration,
    },
    /// Another owner has the lease.
    Taken {
        /// The time left to that lease unless it is renewed, if the server reports it.
        left: Option<Duration>,
    },
    /// Other claims are ahead; the server keeps this one's place in the queue.
    Queued {
        /// The place: lower is served first. Only the order of places means something.
        position: u64,
    },
    /// Other claims are ahead; the server keeps this one's place only if it is requested again within
    /// [`QueueLimit::patience`].
    Placed {
        /// As of [`Answer::Queued`].
        position: u64,
        /// As of [`Answer::Taken`], if this claim is the next to be served.
        left: Option<Duration>,
    },
    /// So many claims wait that this one may not. The server keeps no place for it, or will keep none once
    /// [`Acquisition::release`] was called.
    Full {
        /// The number of claims that wait.
        waiting: u32,
    },
}

/// A lock server's answer to [`Acquisition::renew`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease lives for its full TTL again, or for as long as the client's session.
    Extended {
        /// A reading of the client's clock from before the request was sent.
        since: Instant,
        /// The shortest time for which the lease lives, counted from `since`.
        left: Duration,
    },
    /// The lease expired, or belongs to another owner.
    NotOwner,
}

/// The result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The lease was this owner's and has ended.
    Done,
    /// The lease had expired before, or belonged to another owner: nothing was changed. The work may have
    /// overlapped with another holder's.
    NotOwner,
}
