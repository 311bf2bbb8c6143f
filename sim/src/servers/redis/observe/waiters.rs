//! The queues of waiters on a server, if the number of a lock's waiters is limited: the owners in the sorted
//! set of its key, by their places.

use std::collections::BTreeMap;

use super::super::effects::Effect;
use super::super::number::parse_i64;
use super::View;

/// The queues of all locks.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiters(View<ByKey>);

/// The place of each owner, by the stored key of the queue.
type ByKey = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, i64>>;

impl Waiters {
    /// Notes the command of an effect, if it changes a queue. Returns the key, the owner and the place of a
    /// waiter that has left.
    pub(super) fn note(&self, effect: &Effect) -> Option<(Vec<u8>, Vec<u8>, i64)> {
        super::of_command(effect, |args| {
            let key = args.iter().nth(1).filter(|key| super::is_waiters(key))?.to_vec();
            let queues = &mut *self.0.lock();
            if args.at(0).eq_ignore_ascii_case(b"zadd") && args.len() == 4 {
                let (place, owner) = (parse_i64(args.at(2))?, args.at(3).to_vec());
                queues.entry(key).or_default().insert(owner, place);
            } else if args.at(0).eq_ignore_ascii_case(b"zrem") && args.len() == 3 {
                let owner = args.at(2).to_vec();
                let place = queues.get_mut(&key)?.remove(&owner)?;
                return Some((key, owner, place));
            }
            None
        })
    }

    /// Removes the queue of the stored key; returns its owners and their places.
    pub(super) fn remove(&self, key: &[u8]) -> BTreeMap<Vec<u8>, i64> {
        self.0.lock().remove(key).unwrap_or_default()
    }
}
