//! The errors of a lock, one enum for each operation. Each message says what to do.

use std::time::Duration;

use crate::event::Outcome;
use crate::key::LockKey;
use crate::options::OptionsError;

/// Why [`crate::Lock::try_acquire`] gave no handle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryAcquireError {
    /// Another owner has the lock.
    #[error("the lock is taken by another owner: try again later, or wait with Lock::acquire")]
    Taken {
        /// The time left to its lease unless it is renewed, if the server reports it.
        retry_after: Option<Duration>,
    },
    /// The grant arrived when no more than [`crate::Options::min_validity`] was left of it; it was released.
    #[error(
        "the grant came too late to be of use and was released: raise the TTL above the server's slowest \
         answer"
    )]
    Late,
    /// The lock was closed: see [`crate::Lock::close`]. Any lease that was granted is being released.
    #[error("the lock is closed, since the program ends")]
    Closed,
    /// The TTL of a [`crate::Request`] can't be. Nothing was sent.
    #[error(transparent)]
    Ttl(#[from] OptionsError),
    /// The request is for reading, and the lock has no readers. Nothing was sent.
    #[error("the lock has no readers: set Options::readers for all who share the key, or request it alone")]
    NoReaders,
    /// The lock server failed. Any lease that it may have granted is being released.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl TryAcquireError {
    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::Taken { .. } => Outcome::Contended,
            Self::Late => Outcome::Expired,
            Self::Closed => Outcome::Cancelled,
            Self::Ttl(_) | Self::NoReaders => Outcome::Error,
            Self::Backend(error) => error.outcome(),
        }
    }
}

/// Why [`crate::Lock::acquire`] gave no handle.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use dlock::AcquireError;
///
/// /// Returns the time after which another try is worthwhile; `None` if a person must help.
/// fn retry_in(error: &AcquireError) -> Option<Duration> {
///     match error {
///         AcquireError::Refused(_) => None,
///         other => Some(other.retry_after().unwrap_or(Duration::from_secs(1))),
///     }
/// }
/// assert_eq!(retry_in(&AcquireError::Late), Some(Duration::from_secs(1)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The deadline had passed before anything was sent.
    #[error(
        "the deadline has passed already, nothing was sent: give one that lies ahead on the runtime's clock"
    )]
    DeadlinePassed,
    /// Another owner had the lock until the deadline.
    #[error("the lock was taken by another owner until the deadline: wait longer, or do the work later")]
    Taken {
        /// The time left to the other owner's lease unless it is renewed, if the server reports it.
        retry_after: Option<Duration>,
    },
    /// The last grant before the deadline arrived when no more than [`crate::Options::min_validity`] was left
    /// of it; it was released.
    #[error(
        "the grant came too late to be of use and was released: raise the TTL above the server's slowest \
         answer"
    )]
    Late,
    /// The lock server could not be used until the deadline. Any lease that it may have granted is being
    /// released.
    #[error("no lock until the deadline: {0}")]
    Unavailable(#[source] BackendError),
    /// The lock was closed: see [`crate::Lock::close`]. Any lease that was granted is being released.
    #[error("the lock is closed, since the program ends")]
    Closed,
    /// The lock server refused, and would do so again.
    #[error(transparent)]
    Refused(BackendError),
    /// The TTL of a [`crate::Request`] can't be. Nothing was sent.
    #[error(transparent)]
    Ttl(#[from] OptionsError),
    /// The request is for reading, and the lock has no readers. Nothing was sent.
    #[error("the lock has no readers: set Options::readers for all who share the key, or request it alone")]
    NoReaders,
    /// As many acquires wait for the lock as may: see [`crate::Options::waiters_max`].
    #[error(
        "the lock is taken, and {waiting} acquires wait for it, where {max} may (Options::waiters_max): do \
         the work later, or refuse it to your own caller"
    )]
    QueueFull {
        /// The number of acquires that wait.
        waiting: u32,
        /// The largest number that may wait.
        max: u32,
    },
}

impl AcquireError {
    /// Returns how long the other owner's lease still lived at the last request, if the lock was taken.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Taken { retry_after } => *retry_after,
            _ => None,
        }
    }

    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::DeadlinePassed => Outcome::Timeout,
            Self::Taken { .. } => Outcome::Contended,
            Self::Late => Outcome::Expired,
            Self::QueueFull { .. } => Outcome::Full,
            Self::Closed => Outcome::Cancelled,
            Self::Unavailable(error) | Self::Refused(error) => error.outcome(),
            Self::Ttl(_) | Self::NoReaders => Outcome::Error,
        }
    }
}

/// Why [`crate::Lock::acquire_all`] gave no handles. All leases that it had acquired are being released.
///
/// # Example
///
/// ```
/// use dlock::{AcquireAllError, AcquireError, LockKey};
///
/// let error = AcquireAllError::NotAcquired {
///     key: LockKey::new("accounts", "7")?,
///     source: AcquireError::Taken { retry_after: None },
/// };
/// assert!(error.to_string().starts_with("no lock on accounts:7: "));
/// # Ok::<(), dlock::KeyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireAllError {
    /// No key was given. Nothing was sent.
    #[error("no key was given to lock: name each resource that the work writes")]
    NoKey,
    /// A key was given twice: the second acquire of it would wait for the first for ever. Nothing was sent.
    #[error("the key {key} was given twice: name each key once, since one lease on it guards all its writes")]
    Duplicate {
        /// The key.
        key: LockKey,
    },
    /// One of the keys was not acquired until the deadline.
    #[error("no lock on {key}: {source}; the leases acquired before it are being released")]
    NotAcquired {
        /// The key.
        key: LockKey,
        /// The reason.
        source: AcquireError,
    },
    /// A lease was lost while a later key was waited for: the keys were not held together.
    #[error("{0}; the other leases are being released")]
    Lost(#[from] KeyLostError),
}

/// The first of several leases that may no longer be trusted, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("of several keys, {key} is not held any more: {source}")]
pub struct KeyLostError {
    /// The key.
    pub key: LockKey,
    /// The reason.
    pub source: LostError,
}

/// Why [`crate::Handle::renew`] or [`crate::Handle::renew_for`] did not extend the lease.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenewError {
    /// The lease is lost: stop the work.
    #[error(transparent)]
    Lost(#[from] LostError),
    /// The TTL of [`crate::Handle::renew_for`] can't be. Nothing was sent, and the lease is as before.
    #[error(transparent)]
    Ttl(#[from] OptionsError),
    /// The lock server failed. The lease is still valid for [`crate::Handle::remaining`]: try again before
    /// that is over.
    #[error("not renewed: {0}")]
    Backend(#[from] BackendError),
}

/// Why a lease may no longer be trusted. The work that it guards must stop; what it has sent already is only
/// safe if the resource checks the fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LostError {
    /// The server knows another owner, or none.
    #[error("the lease is lost: the server no longer knows it; stop the work and acquire anew")]
    NotOwner,
    /// The validity was over before a renewal succeeded.
    #[error("the lease is lost: its validity is over; stop the work and acquire anew")]
    Expired,
    /// The lease was released, or its lock closed, while the work went on.
    #[error("the lease was released while the work went on: acquire anew, unless the program ends")]
    Released,
    /// The cap on the total time was reached. The lease itself may still be valid: release it.
    #[error(
        "the lease was held for as long as its cap allows: release it, and raise the cap or do less at a time"
    )]
    Capped,
}

/// Why [`crate::Handle::release`] got no confirmation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lock server did not confirm. Nothing need be done: the lease ends by its TTL at the latest, or
    /// with the client's session.
    #[error("the release was not confirmed: {source}; the lease ends by itself in {ends_in:?} at the latest")]
    Unconfirmed {
        /// The longest time for which the lease may still live on the server.
        ends_in: Duration,
        /// The last failure.
        source: BackendError,
    },
}

/// The reason of an [`BackendError::Unreachable`] whose server did not answer.
#[cfg(any(feature = "redis", feature = "etcd", feature = "tls"))]
pub(crate) const SILENT: &str = "no connection in time";

/// Why a request to a lock server failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// No connection: nothing was sent.
    #[error(
        "no connection to the lock server at {address}: {reason}; check that it runs and that this host may \
         reach it"
    )]
    Unreachable {
        /// The server's address.
        address: String,
        /// The error of the attempt to connect.
        reason: String,
    },
    /// The server did not answer in time. It may have executed the request all the same.
    #[error(
        "the lock server did not answer in time; it may be overloaded or cut off: see \
         Options::request_timeout"
    )]
    NoAnswer,
    /// The connection broke before the answer arrived. The server may have executed the request all the same.
    #[error(
        "the connection to the lock server broke before its answer: {reason}; the next call opens another"
    )]
    Disconnected {
        /// The error of the connection.
        reason: String,
    },
    /// The session that the claim is tied to is over, and the claim with it. The next acquire opens another
    /// session.
    #[error(
        "the session with the lock server is over: {}; acquire anew",
        if *.reported {
            "the server does not know it any more"
        } else {
            "the server did not confirm it in time"
        }
    )]
    SessionLost {
        /// True if the server reported it. Otherwise the server did not confirm the session within the
        /// session's lifetime, by the client's own clock.
        reported: bool,
    },
    /// The server can't reach a majority of its cluster. It may execute the request later all the same.
    #[error("the lock server is without a quorum: {message}; the next call goes to another member")]
    Isolated {
        /// The server's message.
        message: String,
    },
    /// The server answered with an error.
    #[error(
        "the lock server refused: {message}; {}",
        if *.passing {
            "it may take the request later"
        } else {
            "look up this error in its manual, no retry will help"
        }
    )]
    Refused {
        /// The server's message.
        message: String,
        /// True if the same request may succeed later.
        passing: bool,
    },
    /// The backend does not tell who holds a key: an election on it can't be observed.
    #[error("{system} does not tell who holds a key: observe on Redis, Redlock, etcd or ZooKeeper")]
    NotTold {
        /// The name of the system.
        system: &'static str,
    },
    /// Too few of several independent servers answered for a majority. Some may have executed the request.
    #[error(
        "no quorum: {answered} of {nodes} lock servers answered, {needed} are needed; bring back those that \
         are down or cut off, or raise RedlockOptions::node_timeout if they are slow; one of them: {failure}"
    )]
    NoQuorum {
        /// The number of servers that answered.
        answered: usize,
        /// The number of servers.
        nodes: usize,
        /// The size of a majority.
        needed: usize,
        /// The failure of one of the other servers.
        #[source]
        failure: Box<BackendError>,
    },
}

impl BackendError {
    /// Returns whether the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused { passing, .. } => *passing,
            Self::NotTold { .. } => false,
            Self::NoQuorum { failure, .. } => failure.is_passing(),
            _ => true,
        }
    }

    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::NoAnswer => Outcome::Timeout,
            Self::NoQuorum { failure, .. } => failure.outcome(),
            _ => Outcome::Error,
        }
    }
}
