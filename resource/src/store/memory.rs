//! A store in memory. It lives as long as its value: a restart of the process forgets every token, so a real
//! service uses [`super::RedbStore`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{CHANGES_MAX, FenceAdmin, FenceChange, SetOutcome};
use super::{Read, ReadOutcome, Snapshot, Store, StoreError, Write};
use crate::BodyDigest;
use crate::ResourceKey;
use crate::event;
use crate::fence::{Beside, Fence, Fencing, MaxJump, WriteOutcome};

/// Keeps values and fences in a map. Every call completes at once.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use resource::store::{MemoryStore, Read, ReadOutcome, Store};
/// use resource::{Fencing, ResourceKey};
///
/// let store = MemoryStore::new();
/// let claim = Read { claim: Some("34".parse()?), owner: None };
/// let outcome = store.read(&ResourceKey::new("orders:42")?, &claim, Fencing::On).await?;
/// let ReadOutcome::Read(snapshot) = outcome else { panic!("nothing refuses the first claim") };
/// assert_eq!((snapshot.value, snapshot.max_fence), (None, claim.claim));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    entries: Mutex<BTreeMap<ResourceKey, Entry>>,
    max_jump: Option<MaxJump>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    fence: Fence,
    value: Option<Bytes>,
    /// The changes of the fence by operators, the oldest first.
    changes: Vec<FenceChange>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses tokens above `max_jump`, as long as fencing is on.
    #[must_use]
    pub fn with_max_jump(self, max_jump: MaxJump) -> Self {
        Self { max_jump: Some(max_jump), ..self }
    }

    /// Locks the entries. Each entry is complete after each statement, so a panic elsewhere leaves none half
    /// done.
    fn entries(&self) -> MutexGuard<'_, BTreeMap<ResourceKey, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        self.write_beside(key, write, &Beside::NONE, fencing).await
    }

    async fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        self.read_beside(key, read, &Beside::NONE, fencing).await
    }

    async fn write_beside(
        &self,
        key: &ResourceKey,
        write: &Write,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        let digest = BodyDigest::of(&write.body);
        let mut entries = self.entries();
        let entry = entries.entry(key.clone()).or_default();
        let outcome = entry.write(self.max_jump, write, beside, digest, fencing);
        event::write_decided(key, write, digest, &outcome);
        Ok(outcome)
    }

    async fn read_beside(
        &self,
        key: &ResourceKey,
        read: &Read,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        let mut entries = self.entries();
        let outcome = match read.mark() {
            None => ReadOutcome::Read(
                entries.get(key).map_or_else(|| Entry::default().snapshot(), Entry::snapshot),
            ),
            Some(mark) => {
                let entry = entries.entry(key.clone()).or_default();
                match entry.fence.claim_beside_within(self.max_jump, &mark, beside, fencing) {
                    Ok(()) => ReadOutcome::Read(entry.snapshot()),
                    Err(refusal) => ReadOutcome::Refused(refusal),
                }
            }
        };
        event::read_decided(key, read, &outcome);
        Ok(outcome)
    }
}

impl FenceAdmin for MemoryStore {
    async fn set_fence(&self, key: &ResourceKey, change: &FenceChange) -> Result<SetOutcome, StoreError> {
        let mut entries = self.entries();
        let mut fence = entries.get(key).map(|entry| entry.fence.clone()).unwrap_or_default();
        if let Err(moved) = fence.set(change.from, change.to) {
            return Ok(SetOutcome::Moved(moved));
        }
        let entry = entries.entry(key.clone()).or_default();
        entry.fence = fence;
        entry.changes.push(change.clone());
        event::fence_set(key, change.from, change.to);
        Ok(SetOutcome::Set)
    }

    async fn fence_changes(&self, key: &ResourceKey) -> Result<Vec<FenceChange>, StoreError> {
        let entries = self.entries();
        let changes = entries.get(key).map_or(&[][..], |entry| &entry.changes);
        Ok(changes.iter().rev().take(CHANGES_MAX).cloned().collect())
    }
}

impl Entry {
    fn write(
        &mut self,
        max_jump: Option<MaxJump>,
        write: &Write,
        beside: &Beside,
        digest: BodyDigest,
        fencing: Fencing,
    ) -> WriteOutcome {
        let Write { guard, owner, .. } = write;
        let outcome =
            self.fence.write_beside_within(max_jump, *guard, beside, owner.as_ref(), digest, fencing);
        if matches!(outcome, WriteOutcome::Accepted(_)) {
            self.value = Some(write.body.clone());
        }
        outcome
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { value: self.value.clone(), version: self.fence.version, max_fence: self.fence.max_fence() }
    }
}
