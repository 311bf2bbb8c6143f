//! Stores of values and fences.

mod admin;
// Conditional puts into a bucket.
#[cfg(feature = "objects")]
mod bucket;
// Files in a folder, under a lock of the operating system.
#[cfg(feature = "files")]
mod folder;
mod memory;
// The record of a key as bytes.
#[cfg(any(feature = "files", feature = "objects"))]
mod record;
mod redb;

use std::future::Future;

pub use self::admin::{CHANGES_MAX, FenceAdmin, FenceChange, SetOutcome};
#[cfg(feature = "objects")]
pub use self::bucket::{BucketStore, CheckError};
#[cfg(feature = "files")]
pub use self::folder::{FolderStep, FolderStore};
pub use self::memory::MemoryStore;
pub use self::redb::RedbStore;
use crate::ResourceKey;
use crate::fence::{Beside, Fencing, WriteOutcome};
pub use crate::operation::{Read, ReadOutcome, Snapshot, Write};

/// One value for each key, and its fence.
///
/// An implementation keeps three promises, each of which some real resource has broken:
///
/// - It judges and writes in one critical section or transaction. If check and write were two steps, a second
///   writer could pass the same check between them.
/// - An accepted write or claim, its token included, is durable before the future completes. A resource that
///   forgets the highest token when it restarts lets a stale writer in.
/// - It emits each decision by [`crate::event::write_decided`] or [`crate::event::read_decided`], before the
///   next decision about the key.
pub trait Store: Send + Sync + 'static {
    /// Judges `write` by the fence of `key`, and applies it if it is accepted.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store failed; the write may or may not be applied.
    fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> impl Future<Output = Result<WriteOutcome, StoreError>> + Send;

    /// Reads the value of `key`; if `read` has a claim, judges and keeps it first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store failed; the claim may or may not be kept.
    fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        fencing: Fencing,
    ) -> impl Future<Output = Result<ReadOutcome, StoreError>> + Send;

    /// Writes as [`Store::write`] does, for a permit of a semaphore that was granted beside the permits
    /// `beside`: see [`Fence::write_beside`](crate::fence::Fence::write_beside).
    ///
    /// An implementation keeps [`Fence::beside`](crate::fence::Fence::beside) as durable as the highest
    /// token. The default is for a store that keeps no permits: it refuses any set but the empty one. A store
    /// that wraps another one must forward this method and the next one.
    ///
    /// # Errors
    ///
    /// As [`Store::write`], and [`StoreError::Unavailable`] from a store that keeps no permits.
    fn write_beside(
        &self,
        key: &ResourceKey,
        write: &Write,
        beside: &Beside,
        fencing: Fencing,
    ) -> impl Future<Output = Result<WriteOutcome, StoreError>> + Send {
        async move {
            has_no_permits(beside)?;
            self.write(key, write, fencing).await
        }
    }

    /// Reads as [`Store::read`] does; a claim is that of a permit which was granted beside the permits
    /// `beside`. The default is that of [`Store::write_beside`].
    ///
    /// # Errors
    ///
    /// As [`Store::read`], and [`StoreError::Unavailable`] from a store that keeps no permits.
    fn read_beside(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> impl Future<Output = Result<ReadOutcome, StoreError>> + Send {
        async move {
            has_no_permits(beside)?;
            self.read(key, read, fencing).await
        }
    }
}

/// Refuses the set of a request to a store that keeps no permits: ignoring it would refuse live permits.
fn has_no_permits(beside: &Beside) -> Result<(), StoreError> {
    if beside.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "this store keeps no permits of a semaphore, and the request has X-Fence-Beside: {beside}; nothing \
         was stored, use a store with `write_beside` and `read_beside`"
    );
    Err(StoreError::Unavailable(reason.into()))
}

/// The store failed. The request may or may not have been applied: asking again with the same write is safe.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, or the database on it, failed.
    #[error("the store failed: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A stored record can't be read back.
    #[error("the record of a key is corrupt: {0}")]
    Corrupt(&'static str),
}
