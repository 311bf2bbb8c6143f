//! R16: a worker that needs several keys locks them in the order in which its request names them. Two
//! requests that name the same keys the other way round wait for each other; since both renew what they hold,
//! no TTL frees them.
//!
//! Source: common where an account is locked before the account that it pays to.

use dlock::LockKey;

use crate::kit::WorkerMistake;
use crate::{Options, WorkerMode};

/// Locks the keys in the order of the request.
pub(super) struct UnorderedKeys;

impl WorkerMistake for UnorderedKeys {
    fn order(keys: Vec<LockKey>) -> Vec<LockKey> {
        keys
    }
}

/// Makes drawn workers lock two keys, every second one the other way round, unless some lock several already.
pub(super) fn lock_several(options: &mut Options) {
    if options.workers.iter().any(|worker| worker.locks_several()) {
        return;
    }
    let locks = |worker: &crate::Worker| worker.mode == WorkerMode::default();
    name_two(options);
    let pair = options.keys[..2].to_vec();
    for (number, worker) in options.workers.iter_mut().filter(|worker| locks(worker)).enumerate() {
        worker.mode = WorkerMode::new("several");
        (worker.key, worker.keys) = (None, pair.clone());
        if number % 2 == 1 {
            worker.keys.reverse();
        }
    }
}

/// Names a second key, unless there is one.
pub(super) fn name_two(options: &mut Options) {
    if let Some(other) = options.keys.first().map(|key| format!("{key}-b")).filter(|_| options.keys.len() < 2)
    {
        options.keys.push(other);
    }
}
