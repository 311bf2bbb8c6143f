//! R22: a process that misses a result locks it and computes, and does not look again under the lock. All
//! that waited for the lock compute in turn, though the first result is there.
//!
//! Source: common where a cache locks on a miss; double-checked locking leaves the second check out.

use crate::kit::{Hands, WorkerMistake};
use crate::{Options, Worker, WorkerMode};
use dlock::{AnyBackend, Lock, LockKey};
use sim::world::runtime::SimRuntime;

/// Looks once, before it asks for the lock.
pub(super) struct NoSecondLook;

impl WorkerMistake for NoSecondLook {
    async fn fly(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let Some(_) = hands.begin_flight(key).await else { return };
        let Some((handle, section)) = hands.enter(lock, key).await else { return };
        hands.compute(&handle).await;
        drop(section);
        let _ = handle.release().await;
    }
}

/// Makes all drawn workers share results.
pub(super) fn fly(options: &mut Options) {
    (options.permits, options.cron) = Default::default();
    for worker in options.workers.iter_mut() {
        let Worker { name, starts, rounds, key, think, deadline, work, ttl, .. } = worker.clone();
        let mode = WorkerMode::new("single_flight");
        *worker = Worker { name, mode, starts, rounds, key, think, deadline, work, ttl, ..Worker::default() };
    }
}
