//! Where the resource keeps its values and fences.

mod memory;
mod redb;

use std::future::Future;

use bytes::Bytes;
use dlock::FencingToken;

pub use self::memory::MemoryStore;
pub use self::redb::RedbStore;
use crate::fence::{Condition, ConditionalOutcome, Fencing, Mark, Position, Refusal, WriteOutcome, WriteSeq};
use crate::key::ResourceKey;
use crate::owner::OwnerToken;

/// One value for each key, and its fence.
///
/// An implementation keeps three promises, each of which a real resource has broken:
///
/// - It judges and writes in one critical section or transaction. Between a check and a write of its own a second
///   writer would pass the same check.
/// - An accepted write or claim, its token included, is durable before the future completes. A resource that forgets
///   the highest token when it restarts lets a stale writer in.
/// - It tells each decision by [`crate::event::write_decided`], [`crate::event::conditional_decided`] or
///   [`crate::event::read_decided`], before anything else can be decided about the key.
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

    /// Applies `write` if `key` still has the version that it names.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store failed; the write may or may not be applied.
    fn write_if(
        &self,
        key: &ResourceKey,
        write: &ConditionalWrite,
        fencing: Fencing,
    ) -> impl Future<Output = Result<ConditionalOutcome, StoreError>> + Send;

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
    /// The fencing token of the grant that the writer holds.
    pub token: FencingToken,
    /// The number of this write among those of the grant; `None` for the plain write, the grant's last.
    pub seq: Option<WriteSeq>,
    /// The owner token of the grant. Without it a retry can't be told from a duplicate.
    pub owner: Option<OwnerToken>,
    /// The new value.
    pub body: Bytes,
}

impl Write {
    /// Where the write stands, and whose it is.
    pub fn mark(&self) -> Mark {
        Mark { position: Position::write(self.token, self.seq), owner: self.owner.clone() }
    }
}

/// A write without a token, on the condition that the resource still has the version that the writer has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionalWrite {
    /// The version that the writer has read; zero if the resource had never been written.
    pub expected: u64,
    /// The writer's name for this write. Without it a retry can't be told from another's write, and is a conflict.
    pub owner: Option<OwnerToken>,
    /// The new value.
    pub body: Bytes,
}

impl ConditionalWrite {
    /// What the write asks for.
    pub fn condition(&self) -> Condition {
        Condition { expected: self.expected, owner: self.owner.clone() }
    }
}

/// A read of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The token to claim: from then on no older holder can write. `None` reads and changes nothing.
    pub claim: Option<FencingToken>,
    /// The owner token of the reader's grant. An unfenced read may give it too, for the history's sake.
    pub owner: Option<OwnerToken>,
}

impl Read {
    /// Where the claim stands, and whose it is; `None` for an unfenced read.
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
    /// What is stored can't be read back.
    #[error("the record of a key is corrupt: {0}")]
    Corrupt(&'static str),
}
