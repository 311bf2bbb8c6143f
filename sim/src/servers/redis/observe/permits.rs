//! The permits of semaphores on a server: the owners in the sorted sets of their keys, and the end of each
//! lease.
//!
//! The leases for reading of a lock for readers and a writer are stored in the same form, and count as
//! permits here.
//!
//! A permit stays in its sorted set until the next script removes it. Its lease is over before, by the score:
//! that is the time at which it counts as expired.

use std::collections::BTreeMap;

use super::super::effects::Effect;
use super::super::number::parse_i64;
use super::View;

/// The permits of all locks.
#[derive(Clone, Debug, Default)]
pub(super) struct Permits(View<ByKey>);

/// The owners of permits, by the stored key of their lock.
type ByKey = BTreeMap<Vec<u8>, Owners>;

/// The end of the lease of each owner, in milliseconds since the Unix epoch on the server's clock.
type Owners = BTreeMap<Vec<u8>, i64>;

/// A change of one permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It was granted until this time.
    Granted(i64),
    /// Its lease was extended, or shortened, until this time.
    Extended(i64),
    /// It was removed before its end.
    Ended,
}

impl Permits {
    /// Notes the command of an effect, if it changes the permits of a lock: returns the key, the owner and
    /// the change. Of an owner whose lease had expired before, there is nothing to return.
    pub(super) fn note(&self, effect: &Effect) -> Option<(Vec<u8>, Vec<u8>, Change)> {
        super::of_command(effect, |args| {
            let key = args.iter().nth(1).filter(|key| super::is_permits(key))?.to_vec();
            let owners = &mut *self.0.lock();
            if args.at(0).eq_ignore_ascii_case(b"zadd") && args.len() == 4 {
                let (over, owner) = (parse_i64(args.at(2))?, args.at(3).to_vec());
                let former = owners.entry(key.clone()).or_default().insert(owner.clone(), over);
                let change = if former.is_some() { Change::Extended(over) } else { Change::Granted(over) };
                return Some((key, owner, change));
            }
            if args.at(0).eq_ignore_ascii_case(b"zrem") && args.len() == 3 {
                let owner = args.at(2).to_vec();
                owners.get_mut(&key)?.remove(&owner)?;
                return Some((key, owner, Change::Ended));
            }
            None
        })
    }

    /// Removes all permits of the stored key; returns their owners.
    pub(super) fn remove(&self, key: &[u8]) -> Vec<Vec<u8>> {
        self.0.lock().remove(key).into_iter().flatten().map(|(owner, _)| owner).collect()
    }

    /// Removes the permits whose leases are over at `now_ms`; returns their keys and owners.
    pub(super) fn expire(&self, now_ms: i64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut expired = Vec::new();
        for (key, owners) in self.0.lock().iter_mut() {
            owners.retain(|owner, over| {
                let is_over = *over <= now_ms;
                if is_over {
                    expired.push((key.clone(), owner.clone()));
                }
                !is_over
            });
        }
        expired
    }

    /// Returns the end of the lease that ends first.
    pub(super) fn next_end(&self) -> Option<i64> {
        self.0.lock().values().flat_map(BTreeMap::values).copied().min()
    }
}
