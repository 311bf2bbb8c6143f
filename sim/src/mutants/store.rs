//! Resources with one mistake. Each keeps a value and a fence for each key, and tells its decisions as the real stores do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dlock::Runtime;
use resource::fence::{ConditionalOutcome, Fence, Fencing, Pass, Receipt, WriteOutcome, judge};
use resource::store::{ConditionalWrite, Read, ReadOutcome, Snapshot, Store, StoreError, Write};
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

    /// Judges and writes at once, as the fence rule has it, and tells so.
    fn apply(&self, key: &ResourceKey, write: &Write, fencing: Fencing) -> WriteOutcome {
        let digest = BodyDigest::of(&write.body);
        let mut rows = lock(&self.rows);
        let row = rows.entry(key.clone()).or_default();
        let outcome = row.fence.write(write.mark(), digest, fencing);
        if matches!(outcome, WriteOutcome::Accepted(_)) {
            row.value = Some(write.body.clone());
        }
        event::write_decided(key, write, digest, &outcome);
        outcome
    }

    /// The refusal of a write, told; `None` if it may pass.
    fn refusal(
        &self,
        key: &ResourceKey,
        write: &Write,
        passes: impl Fn(&Fence) -> bool,
    ) -> Option<WriteOutcome> {
        let rows = lock(&self.rows);
        let fence = rows.get(key).map(|row| &row.fence)?;
        if passes(fence) {
            return None;
        }
        let mark = write.mark();
        let refusal = judge(fence.highest.as_ref(), mark.position, mark.owner.as_ref()).err()?;
        let outcome = match &fence.last_write {
            Some((Pass::Fenced(last), body)) if *last == mark && *body == BodyDigest::of(&write.body) => {
                WriteOutcome::Repeated(Receipt { version: fence.version, max_fence: refusal.seen })
            }
            _ => WriteOutcome::Refused(refusal),
        };
        event::write_decided(key, write, BodyDigest::of(&write.body), &outcome);
        Some(outcome)
    }

    /// B34: another write may pass the same check before this one is applied.
    async fn check_then_write(&self, key: &ResourceKey, write: &Write) -> WriteOutcome {
        let mark = write.mark();
        let passes =
            |fence: &Fence| judge(fence.highest.as_ref(), mark.position, mark.owner.as_ref()).is_ok();
        if let Some(refused) = self.refusal(key, write, passes) {
            return refused;
        }
        let mut random = [0];
        self.runtime.fill_random(&mut random);
        let disk = DISK_MAX * u32::from(random[0]) / 256;
        self.runtime.sleep_until(self.runtime.now() + disk).await;
        self.apply(key, write, Fencing::Off)
    }

    /// A token that is not below the highest passes.
    fn accept_equal(&self, key: &ResourceKey, write: &Write) -> WriteOutcome {
        let passes = |fence: &Fence| fence.max_fence().is_none_or(|seen| write.token >= seen);
        match self.refusal(key, write, passes) {
            Some(refused) => refused,
            None => self.apply(key, write, Fencing::Off),
        }
    }
}

impl Store for MutantStore {
    async fn write(
        &self,
        key: &ResourceKey,
        write: &Write,
        fencing: Fencing,
    ) -> Result<WriteOutcome, StoreError> {
        Ok(match (fencing, self.mutant) {
            (Fencing::On, Mutant::CheckThenWrite) => self.check_then_write(key, write).await,
            (Fencing::On, Mutant::AcceptsEqual) => self.accept_equal(key, write),
            _ => self.apply(key, write, fencing),
        })
    }

    async fn write_if(
        &self,
        key: &ResourceKey,
        write: &ConditionalWrite,
        fencing: Fencing,
    ) -> Result<ConditionalOutcome, StoreError> {
        let digest = BodyDigest::of(&write.body);
        let mut rows = lock(&self.rows);
        let row = rows.entry(key.clone()).or_default();
        let mut condition = write.condition();
        if self.mutant == Mutant::IgnoresVersion {
            condition.expected = row.fence.version;
        }
        let outcome = row.fence.write_if(condition, digest, fencing);
        if matches!(outcome, ConditionalOutcome::Accepted { .. }) {
            row.value = Some(write.body.clone());
        }
        event::conditional_decided(key, write, digest, &outcome);
        Ok(outcome)
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
