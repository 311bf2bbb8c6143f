//! Resources with one mistake. Each keeps a value and a fence for each key, and tells its decisions as the real stores do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dlock::Runtime;
use resource::fence::{Fence, Fencing, Guard, LastWrite, Position, Receipt, Refusal, WriteOutcome, judge};
use resource::store::{Read, ReadOutcome, Snapshot, Store, StoreError, Write};
use resource::{BodyDigest, ResourceKey, event};

use super::Mutant;
use crate::world::lock;
use crate::world::runtime::SimRuntime;

/// The longest time that the slow disk of [`Mutant::CheckThenWrite`] needs between its check and its write.
const DISK_MAX: Duration = Duration::from_millis(64);

/// A resource with the mistake of `mutant`.
pub(crate) struct MutantStore {
    mutant: Mutant,
    runtime: SimRuntime,
    rows: Rows,
}

/// What a resource stores. Kept by its machine, it outlives a restart of the process, as on a disk that syncs at once.
pub(crate) type Rows = Arc<Mutex<BTreeMap<ResourceKey, Row>>>;

/// A key's value and its fence.
#[derive(Default)]
pub(crate) struct Row {
    fence: Fence,
    value: Option<Bytes>,
}

impl MutantStore {
    /// A resource on the stored `rows`, or one that has forgotten them.
    pub(crate) fn new(mutant: Mutant, runtime: SimRuntime, rows: &Rows) -> Self {
        let rows = if mutant == Mutant::ForgetsOnRestart { Rows::default() } else { Arc::clone(rows) };
        Self { mutant, runtime, rows }
    }

    /// Judges and writes at once, by the fence rule, and emits the decision. `guard` is what the rule is asked about.
    fn apply(&self, key: &ResourceKey, write: &Write, guard: Guard, fencing: Fencing) -> WriteOutcome {
        let digest = BodyDigest::of(&write.body);
        let mut rows = lock(&self.rows);
        let row = rows.entry(key.clone()).or_default();
        let outcome = row.fence.write(guard, write.owner.as_ref(), digest, fencing);
        if matches!(outcome, WriteOutcome::Accepted(_)) {
            row.value = Some(write.body.clone());
        }
        event::write_decided(key, write, digest, &outcome);
        outcome
    }

    /// The refusal of a write with a token, which is emitted; `None` if it may pass.
    fn refusal(
        &self,
        key: &ResourceKey,
        write: &Write,
        passes: impl Fn(&Fence) -> Result<(), Refusal>,
    ) -> Option<WriteOutcome> {
        let rows = lock(&self.rows);
        let fence = rows.get(key).map(|row| &row.fence)?;
        let refusal = passes(fence).err()?;
        let digest = BodyDigest::of(&write.body);
        let this = LastWrite { guard: write.guard, owner: write.owner.clone(), digest };
        let outcome = if fence.last_write.as_ref() == Some(&this) {
            WriteOutcome::Repeated(Receipt { version: fence.version, max_fence: refusal.seen() })
        } else {
            WriteOutcome::Refused(refusal)
        };
        event::write_decided(key, write, digest, &outcome);
        Some(outcome)
    }

    /// B34: another write may pass the same check before this one is applied.
    async fn check_then_write(&self, key: &ResourceKey, write: &Write, position: Position) -> WriteOutcome {
        let passes = |fence: &Fence| judge(fence.highest.as_ref(), position, write.owner.as_ref());
        if let Some(refused) = self.refusal(key, write, passes) {
            return refused;
        }
        let mut random = [0];
        self.runtime.fill_random(&mut random);
        let disk = DISK_MAX * u32::from(random[0]) / 256;
        self.runtime.sleep_until(self.runtime.now() + disk).await;
        self.apply(key, write, write.guard, Fencing::Off)
    }

    /// A token that is not below the highest passes.
    fn accept_equal(&self, key: &ResourceKey, write: &Write, position: Position) -> WriteOutcome {
        let passes = |fence: &Fence| match fence.max_fence() {
            Some(seen) if position.token() < seen => {
                judge(fence.highest.as_ref(), position, write.owner.as_ref())
            }
            _ => Ok(()),
        };
        match self.refusal(key, write, passes) {
            Some(refused) => refused,
            None => self.apply(key, write, write.guard, Fencing::Off),
        }
    }

    /// The version that the resource has, whatever version the write names.
    fn current(&self, key: &ResourceKey) -> Guard {
        let rows = lock(&self.rows);
        Guard::Version { expected: rows.get(key).map_or(0, |row| row.fence.version) }
    }
}

impl Store for MutantStore {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        let position = match write.guard {
            Guard::Token { token, seq } => Position::write(token, seq),
            Guard::Version { .. } if self.mutant == Mutant::IgnoresVersion => {
                return Ok(self.apply(key, write, self.current(key), fencing));
            }
            Guard::Version { .. } => return Ok(self.apply(key, write, write.guard, fencing)),
        };
        Ok(match (fencing, self.mutant) {
            (Fencing::On, Mutant::CheckThenWrite) => self.check_then_write(key, write, position).await,
            (Fencing::On, Mutant::AcceptsEqual) => self.accept_equal(key, write, position),
            _ => self.apply(key, write, write.guard, fencing),
        })
    }

    async fn read(
        &self,
        key: &ResourceKey,
        read: &Read,
        fencing: Fencing,
    ) -> Result<ReadOutcome, StoreError> {
        let mut rows = lock(&self.rows);
        let row = rows.entry(key.clone()).or_default();
        let claimed = read.mark().map_or(Ok(()), |mark| row.fence.claim(&mark, fencing));
        let outcome = match claimed {
            Ok(()) => ReadOutcome::Read(Snapshot {
                value: row.value.clone(),
                version: row.fence.version,
                max_fence: row.fence.max_fence(),
            }),
            Err(refusal) => ReadOutcome::Refused(refusal),
        };
        event::read_decided(key, read, &outcome);
        Ok(outcome)
    }
}
