//! The owners of locks that are hashes: each field is an owner, and its value how often that owner has the
//! lock.
//!
//! Source: Redisson's `RLock` and `RFencedLock`. Their scripts acquire and renew by HINCRBY and PEXPIRE, and
//! release by HINCRBY, then DEL at zero. The field `mode` of its `RReadWriteLock` has no number: it is no
//! owner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::effects::Effect;
use super::super::number::parse_i64;
use super::super::request::Args;

/// The owners in all hashes that are locks.
#[derive(Debug, Default)]
pub(super) struct Hashes(Mutex<ByKey>);

/// The number of times that each owner has the lock, by the key of the lock.
type ByKey = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, i64>>;

/// The changes of a lock's owners by one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Owners {
    /// The key of the lock.
    pub(super) key: Vec<u8>,
    /// Those that have it now, and had not before.
    pub(super) granted: BTreeSet<Vec<u8>>,
    /// Those that had it, and have it no more.
    pub(super) ended: BTreeSet<Vec<u8>>,
}

impl Hashes {
    /// Notes the command of an effect, if it changes a hash for which `is_lock` holds.
    pub(super) fn note(&self, effect: &Effect, is_lock: impl Fn(&[u8]) -> bool) -> Option<Owners> {
        super::of_command(effect, |args| {
            let key = args.iter().nth(1).filter(|key| is_lock(key))?.to_vec();
            let mut changes = Owners { key: key.clone(), ..Owners::default() };
            let mut all = self.all();
            let counts = all.entry(key).or_default();
            for (owner, count) in changed_fields(args, counts)? {
                let had = counts.contains_key(owner);
                match count.filter(|count| *count > 0) {
                    Some(count) => {
                        counts.insert(owner.to_vec(), count);
                        if !had {
                            changes.granted.insert(owner.to_vec());
                        }
                    }
                    None if had => {
                        counts.remove(owner);
                        changes.ended.insert(owner.to_vec());
                    }
                    None => {}
                }
            }
            Some(changes)
        })
    }

    /// Returns the owners in the hash `key`.
    pub(super) fn owners(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.all().get(key).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Removes the hash `key`; returns its owners.
    pub(super) fn remove(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.all().remove(key).into_iter().flatten().map(|(owner, _)| owner).collect()
    }

    fn all(&self) -> MutexGuard<'_, ByKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The view of another server, or of the next life of this one, begins without owners.
impl Clone for Hashes {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Returns the fields that the command changes, with their new numbers: `None` for a field that is removed,
/// or that has no whole number. Returns `None` for other commands.
fn changed_fields<'a>(
    args: Args<'a>,
    counts: &BTreeMap<Vec<u8>, i64>,
) -> Option<Vec<(&'a [u8], Option<i64>)>> {
    let command = args.at(0).to_ascii_lowercase();
    let rest: Vec<_> = args.skip(2).iter().collect();
    Some(match (command.as_slice(), rest.as_slice()) {
        (b"hset" | b"hmset" | b"hsetnx", pairs) => {
            pairs.chunks_exact(2).map(|pair| (pair[0], parse_i64(pair[1]))).collect()
        }
        (b"hincrby", [owner, by]) => {
            let count = counts.get(*owner).copied().unwrap_or(0);
            vec![(*owner, parse_i64(by).map(|by| count.saturating_add(by)))]
        }
        (b"hdel", fields) => fields.iter().map(|field| (*field, None)).collect(),
        _ => return None,
    })
}
