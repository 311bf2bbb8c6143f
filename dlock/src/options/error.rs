//! Why options are refused.

use std::time::Duration;

/// Options that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The TTL is zero, or below the millisecond that servers count in.
    #[error("a TTL of {ttl:?} would expire at once: give at least some milliseconds, better some seconds")]
    TtlZero {
        /// The TTL.
        ttl: Duration,
    },
    /// Nothing of the TTL is left after the drift margin.
    #[error(
        "of a TTL of {ttl:?} the drift margin of {drift:?} leaves nothing: give a longer TTL or a smaller \
         margin"
    )]
    TtlTooShort {
        /// The TTL.
        ttl: Duration,
        /// The drift margin of this TTL.
        drift: Duration,
    },
    /// No grant can have the minimum validity.
    #[error(
        "a minimum validity of {asked:?} leaves no time to acquire: of this TTL at most {most:?} is valid; \
         give less, or a longer TTL"
    )]
    MinValidity {
        /// The minimum validity.
        asked: Duration,
        /// The validity of a grant that takes no time.
        most: Duration,
    },
    /// The work would be told to come to an end before it begins.
    #[error(
        "a validity of {asked:?} can't count as low: of this TTL at most {most:?} is valid; give less, or a \
         longer TTL"
    )]
    LowValidity {
        /// The validity that counts as low.
        asked: Duration,
        /// The validity of a grant that takes no time.
        most: Duration,
    },
    /// The session that leases are tied to may end earlier than the lease.
    #[error(
        "a TTL of {ttl:?} is above that of the session, {session:?}: give a shorter one, or make the \
         client's session longer"
    )]
    TtlAboveSession {
        /// The TTL.
        ttl: Duration,
        /// The TTL of the client's session.
        session: Duration,
    },
    /// The TTL is so long that a crashed holder would block the resource for good.
    #[error("a TTL of {ttl:?} is above {max:?}: give a shorter one and let the watchdog renew it")]
    TtlTooLong {
        /// The TTL.
        ttl: Duration,
        /// The longest one.
        max: Duration,
    },
    /// The name of the process can't be part of an owner token.
    #[error("the instance name has {bytes} bytes: give 1 to {max}, without control characters, or None")]
    Instance {
        /// Its size in bytes.
        bytes: usize,
        /// The largest size in bytes.
        max: usize,
    },
    /// No lock can have this number of permits.
    #[error("a lock with {permits} permits can't be: give 1 for a mutex, or up to {max}")]
    Permits {
        /// The number of permits.
        permits: u32,
        /// The largest number.
        max: u32,
    },
    /// The backend grants a key to one holder only.
    #[error("{system} has no locks with {permits} permits: use Redis, etcd or ZooKeeper, or one permit")]
    NoPermits {
        /// The name of the system.
        system: &'static str,
        /// The number of permits.
        permits: u32,
    },
    /// An election has one leader at a time.
    #[error("an election on a lock with {permits} permits would have as many leaders: give one permit")]
    Leaders {
        /// The number of permits.
        permits: u32,
    },
    /// A flight has one computation at a time.
    #[error(
        "a flight on a lock with {permits} permits would have as many computations at once: give one permit"
    )]
    Flights {
        /// The number of permits.
        permits: u32,
    },
    /// A lock has permits, or readers and a writer.
    #[error(
        "a lock with readers and {permits} permits can't be: any number of readers may share it; give one permit"
    )]
    ReadersWithPermits {
        /// The number of permits.
        permits: u32,
    },
    /// The backend has no locks for readers and a writer.
    #[error("{system} has no locks for readers and a writer: use Redis, etcd or ZooKeeper, or a mutex")]
    NoReaders {
        /// The name of the system.
        system: &'static str,
    },
    /// No queue can have this limit.
    #[error("a queue of at most {waiters} waiters can't be: give 1 to {max}, or None for any number")]
    Waiters {
        /// The limit.
        waiters: u32,
        /// The largest limit.
        max: u32,
    },
    /// A lock has readers, or a limit of its waiters.
    #[error("a lock with readers has no limit of its waiters: leave out waiters_max, or use a mutex")]
    ReadersWithQueue,
    /// The backend has no queue for such a lock.
    #[error(
        "{system} can't limit the waiters for a lock with {permits} permit(s): use one Redis, etcd or ZooKeeper"
    )]
    NoQueue {
        /// The name of the system.
        system: &'static str,
        /// The number of permits.
        permits: u32,
    },
    /// A server call would fail at once.
    #[error("the request timeout is zero: give it the slowest answer that the server may take")]
    RequestTimeoutZero,
    /// The backoff would spin, or its maximum is below its base.
    #[error("a backoff from {base:?} to {max:?} can't be: give a base above zero and a maximum not below it")]
    Backoff {
        /// The longest first wait.
        base: Duration,
        /// The longest wait.
        max: Duration,
    },
}
