//! The queue of waiters that a Redis keeps for a lock with a limit of them: its keys.

use crate::key::LockKey;

/// The end of the key with the waiters by their places.
pub(crate) const WAITERS: &str = "}:waiters";

/// The end of the key with the waiters by the time at which each must have asked again.
pub(crate) const PATIENCE: &str = "}:patience";

impl LockKey {
    /// Returns the Redis key with the owners that wait, if their number is limited: a sorted set, ordered by
    /// their places.
    pub fn waiters_key(&self) -> String {
        self.stored(WAITERS).concat()
    }

    /// Returns the Redis key with the same owners: a sorted set, ordered by the time at which each must have
    /// asked again, in milliseconds since 1970.
    pub fn patience_key(&self) -> String {
        self.stored(PATIENCE).concat()
    }
}
