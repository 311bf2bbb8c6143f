//! Stores of values and fences.

mod memory;
mod redb;

use std::future::Future;

use bytes::Bytes;
use dlock::FencingToken;

pub use self::memory::MemoryStore;
pub use self::redb::RedbStore;
use crate::fence::{Fencing, Guard, Mark, Position, Refusal, WriteOutcome};
use crate::key::ResourceKey;
use crate::owner::OwnerToken;

/// One value for each key, and its fence.
///
/// An implementation keeps three promises, each of which some real resource has broken:
///
/// - It judges and writes in one critical section or transaction. Between a check and a write of its own a
///   second writer would pass the same check.
/// - An accepted write or claim, its token included, is durable before the future completes. A resource that
///   forgets the highest token when it restarts lets a stale writer in.
/// - It emits each decision by [`crate::event::write_decided`] or [`crate::event::read_decided`], before
///   anything else can be decided about the key.
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

/// A write to a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// What must still hold for it to be applied.
    pub guard: Guard,
    /// The owner token of the grant; of a conditional write, any name that its writer gave to it. Without it
    /// a retry can't be told from a duplicate, and is refused.
    pub owner: Option<OwnerToken>,
    /// The new value.
    pub body: Bytes,
}

/// A read of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The token to claim: from then on no older holder can write. `None` reads and changes nothing.
    pub claim: Option<FencingToken>,
    /// The owner token of the reader's grant. An unfenced read may name it too, so that histories show the
    /// reader.
    pub owner: Option<OwnerToken>,
}

impl Read {
    /// Returns the position and owner of the claim; `None` for an unfenced read.
    pub fn mark(&self) -> Option<Mark> {
        self.claim.map(|token| Mark { position: Position::claim(token), owner: self.owner.clone() })
    }
}

/// A resource at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its value; `None` if it was never written.
    pub value: Option<Bytes>,
    /// How many writes were accepted.
    pub version: u64,
    /// The highest token seen; `None` if there was none.
    pub max_fence: Option<FencingToken>,
}

/// How a read was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The resource as it is; a claim was kept.
    Read(Snapshot),
    /// The claim was refused.
    Refused(Refusal),
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
