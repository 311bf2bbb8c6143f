//! The owners of locks that are hashes: each field is an owner, and its value how often that owner has the
//! lock.
//!
//! Source: Redisson's `RLock` and `RFencedLock`. Their scripts acquire by HINCRBY and PEXPIRE, renew by
//! PEXPIRE, and release by HINCRBY, then DEL at zero. The token of `RFencedLock` is in a key of its own, and
//! is not recorded. The field `mode` of `RReadWriteLock` holds no number, so it is no owner.

use std::collections::{BTreeMap, BTreeSet};

use super::super::effects::Effect;
use super::super::number::parse_i64;
use super::super::request::Args;
use super::View;

/// The owners in all hashes that are locks.
#[derive(Clone, Debug, Default)]
pub(super) struct Hashes(View<ByKey>);

/// The number in each field, by the key of the lock. An owner has the lock if its number is above zero.
type ByKey = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, i64>>;

/// The changes of a lock's owners by one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Owners {
    /// The key of the lock.
    pub(super) key: Vec<u8>,
    /// The fields that the command named.
    pub(super) named: BTreeSet<Vec<u8>>,
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
            let mut all = self.0.lock();
            let counts = all.entry(key).or_default();
            for (owner, count) in changed_fields(args, counts)? {
                changes.named.insert(owner.to_vec());
                let former = match count {
                    Some(count) => counts.insert(owner.to_vec(), count),
                    None => counts.remove(owner),
                };
                match (former.is_some_and(has_lock), count.is_some_and(has_lock)) {
                    (false, true) => _ = changes.granted.insert(owner.to_vec()),
                    (true, false) => _ = changes.ended.insert(owner.to_vec()),
                    _ => {}
                }
            }
            Some(changes)
        })
    }

    /// Returns the owners in the hash `key`.
    pub(super) fn owners(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.0.lock().get(key).into_iter().flat_map(owners).collect()
    }

    /// Removes the hash `key`; returns its owners.
    pub(super) fn remove(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.0.lock().remove(key).iter().flat_map(owners).collect()
    }
}

fn owners(counts: &BTreeMap<Vec<u8>, i64>) -> impl Iterator<Item = Vec<u8>> {
    counts.iter().filter(|(_, count)| has_lock(**count)).map(|(owner, _)| owner.clone())
}

fn has_lock(count: i64) -> bool {
    count > 0
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
        (b"hsetex", words) => {
            let at = words.iter().position(|word| word.eq_ignore_ascii_case(b"fields"))?;
            let number = usize::try_from(parse_i64(words.get(at + 1)?)?).ok()?;
            let pairs = words.get(at + 2..)?.chunks_exact(2).take(number);
            pairs.map(|pair| (pair[0], parse_i64(pair[1]))).collect()
        }
        (b"hgetdel", [_, _, fields @ ..]) => fields.iter().map(|field| (*field, None)).collect(),
        (b"hdel", fields) => fields.iter().map(|field| (*field, None)).collect(),
        _ => return None,
    })
}
