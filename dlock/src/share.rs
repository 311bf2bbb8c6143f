//! Locks for readers and a writer: their keys on servers, and the handle of a lease for reading.

use crate::backend::Backend;
use crate::handle::Handle;
use crate::key::LockKey;

/// The end of the key with the owners of the leases for reading.
pub(crate) const READERS: &str = "}:readers";

/// The end of the key with the tokens of these owners.
pub(crate) const READS: &str = "}:reads";

/// The end of the key with the owners of the writers that wait for readers.
pub(crate) const WRITERS: &str = "}:writers";

impl LockKey {
    /// The beginning of the last part of a reader's key in etcd. It is behind all other keys of the queue in
    /// the order of bytes, so that one range has the writers.
    pub const ETCD_READER: &str = "~read-";

    /// Returns the Redis key with the owners of the leases for reading: a sorted set, ordered by the end of
    /// their leases in milliseconds since 1970.
    pub fn readers_key(&self) -> String {
        self.stored(READERS).concat()
    }

    /// Returns the Redis key with the fencing tokens of the leases for reading, by their owners: a hash.
    pub fn reads_key(&self) -> String {
        self.stored(READS).concat()
    }

    /// Returns the Redis key with the owners of the writers that wait, and bar new readers: a sorted set,
    /// ordered by the time until which each does so, in milliseconds since 1970.
    pub fn writers_key(&self) -> String {
        self.stored(WRITERS).concat()
    }
}

impl<B: Backend, T> Handle<B, T> {
    /// Returns true if the lease is for reading: others may have theirs at the same time.
    pub fn is_shared(&self) -> bool {
        self.held().claim().is_shared()
    }

    /// Returns at once whether the lease is one for writing. A lease for reading is never made one: two
    /// readers that both waited for it would wait for each other for ever.
    ///
    /// # Errors
    ///
    /// [`UpgradeError::Shared`] if the lease is for reading. It stays as it is.
    ///
    /// # Example
    ///
    /// ```
    /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
    /// # example::run(async |lock, _, key| {
    /// let handle = lock.try_acquire(&key).await?;
    /// assert!(!handle.is_shared());
    /// handle.upgrade()?;
    /// # Ok(()) });
    /// ```
    pub fn upgrade(&self) -> Result<(), UpgradeError> {
        if self.is_shared() { Err(UpgradeError::Shared) } else { Ok(()) }
    }
}

/// Why [`Handle::upgrade`] refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpgradeError {
    /// The lease is for reading.
    #[error(
        "a lease for reading is not made one for writing: two readers that both waited for it would wait for \
         each other for ever; release it, acquire the lock for writing, and read again, since another writer \
         may have come between"
    )]
    Shared,
}
