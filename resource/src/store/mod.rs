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
use crate::fence::{Fencing, WriteOutcome};
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
