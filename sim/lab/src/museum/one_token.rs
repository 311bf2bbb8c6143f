//! R37: a worker that has locked several keys writes to all of them with the token of the first. Where each
//! key counts its own grants, that token says nothing about the others: their resources take it, and refuse
//! their next holders, whose tokens are lower.
//!
//! Source: common where a lock of several keys returns one number.

use crate::kit::{Hands, WorkerMistake};
use crate::{Options, Worker, WorkerMode};
use dlock::{AnyBackend, Handle};
use sim::world::runtime::SimRuntime;

/// Writes with the token of the first key.
pub(super) struct OneToken;

impl WorkerMistake for OneToken {
    async fn write_one(
        hands: &Hands,
        handle: &Handle<AnyBackend<SimRuntime>>,
        first: &Handle<AnyBackend<SimRuntime>>,
    ) {
        hands.put(handle, first.fence()).await;
    }
}

/// Makes every third worker that locks lock two keys, and lets the others lock one of the two each, so that
/// the keys count unlike numbers of grants.
pub(super) fn lock_two_or_one(options: &mut Options) {
    (options.permits, options.readers, options.cron) = (None, false, Default::default());
    super::unordered_keys::name_two(options);
    for name in ["a", "b", "c"] {
        if options.workers.len() < 3 && options.worker(name).is_none() {
            options.workers.push(Worker::new(name));
        }
    }
    let pair = options.keys[..2].to_vec();
    for (number, worker) in options.workers.iter_mut().enumerate() {
        super::exhibit::only_locking(worker);
        worker.shared = false;
        (worker.mode, worker.key, worker.keys) = match number % 3 {
            0 => (WorkerMode::new("several"), None, pair.clone()),
            one => (WorkerMode::default(), pair.get(one - 1).cloned(), Vec::new()),
        };
    }
}
