//! The multi-version store: every key's history by revision, and the log of changes that watches read.
//!
//! Source of the rules: etcd's `server/mvcc` (kvstore.go, kvstore_txn.go). [`read`] answers ranges, [`write`]
//! carries out puts and deletes, [`txn`] transactions.

pub(super) mod check;
pub(super) mod compare;
pub(super) mod read;
pub(super) mod span;
pub(super) mod txn;
pub(super) mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use etcd_client::proto::PbKeyValue;

use super::error::Refusal;
use super::lease::Lessor;

/// All that etcd replicates: keys and leases.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) store: Store,
    pub(super) lessor: Lessor,
}

/// The keys.
#[derive(Debug)]
pub(super) struct Store {
    /// The revision of the last transaction that changed something; 1 in an empty store.
    revision: i64,
    /// Older revisions can't be read any more. Before the first compaction it is -1, as in etcd.
    compacted: i64,
    keys: BTreeMap<Vec<u8>, History>,
    log: BTreeMap<i64, Vec<Change>>,
}

/// One key's versions, oldest first.
#[derive(Debug, Default)]
struct History(Vec<Version>);

#[derive(Debug)]
struct Version {
    revision: i64,
    /// `None` since the key was deleted.
    kv: Option<Arc<PbKeyValue>>,
}

/// The effect of one operation on one key.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The key after the change. A deleted key has only its name and the revision of the deletion.
    pub(super) kv: Arc<PbKeyValue>,
    /// The key before the change.
    pub(super) former: Option<Arc<PbKeyValue>>,
    pub(super) is_delete: bool,
}

impl Default for Store {
    fn default() -> Self {
        Self { revision: 1, compacted: -1, keys: BTreeMap::new(), log: BTreeMap::new() }
    }
}

impl Store {
    pub(super) const fn revision(&self) -> i64 {
        self.revision
    }

    pub(super) const fn compacted(&self) -> i64 {
        self.compacted
    }

    /// Returns the changes of the revisions `from` to `to`, both included, in order.
    pub(super) fn changes(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, &[Change])> {
        let revisions = (from <= to).then(|| self.log.range(from..=to));
        revisions.into_iter().flatten().map(|(revision, changes)| (*revision, changes.as_slice()))
    }

    /// Forbids reading older revisions than `revision`, and drops the changes that no member needs: each has
    /// applied at least `applied`.
    pub(super) fn compact(&mut self, revision: i64, applied: i64) -> Result<(), Refusal> {
        if revision <= self.compacted {
            return Err(Refusal::Compacted);
        }
        if revision > self.revision {
            return Err(Refusal::FutureRevision);
        }
        self.compacted = revision;
        let floor = revision.min(applied);
        // A watch may still begin at the compacted revision.
        self.log = self.log.split_off(&floor);
        self.keys.retain(|_, history| history.compact(floor));
        Ok(())
    }

    /// Records the changes of one transaction under the next revision.
    fn commit(&mut self, changes: Vec<Change>) {
        self.revision += 1;
        self.log.insert(self.revision, changes);
    }
}

impl History {
    fn at(&self, revision: i64) -> Option<&Arc<PbKeyValue>> {
        let later = self.0.iter().rev().take_while(|version| version.revision > revision).count();
        self.0.iter().rev().nth(later)?.kv.as_ref()
    }

    fn push(&mut self, revision: i64, kv: Option<Arc<PbKeyValue>>) {
        self.0.push(Version { revision, kv });
    }

    /// Drops versions that can't be read at `floor` or later. Returns true if a version is left.
    fn compact(&mut self, floor: i64) -> bool {
        let seen_last = self.0.iter().rposition(|version| version.revision <= floor);
        if let Some(last) = seen_last {
            let is_gone = self.0[last].kv.is_none();
            self.0.drain(..if is_gone { last + 1 } else { last });
        }
        !self.0.is_empty()
    }
}
