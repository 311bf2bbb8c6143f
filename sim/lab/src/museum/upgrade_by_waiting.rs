//! R27: a reader that wants to write keeps its lease for reading, and waits for one for writing. It waits for
//! itself, and for the other readers that do the same; all of them renew what they hold.
//!
//! Source: the documentation of Java's `ReentrantReadWriteLock` warns of it: a reader that tries to acquire
//! the write lock will never succeed.

use dlock::{AnyBackend, Lock, LockKey};
use sim::world::runtime::SimRuntime;

use crate::kit::{Hands, WorkerMistake};
use crate::{Options, WorkerMode};

/// Waits for the lease for writing while it holds one for reading.
pub(super) struct UpgradeByWaiting;

impl WorkerMistake for UpgradeByWaiting {
    async fn upgrade(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let Some((reader, section)) = hands.enter_to_read(lock, key).await else { return };
        hands.round::<Self>(lock, key).await;
        drop(section);
        let _ = reader.release().await;
    }
}

/// Makes workers of a lock with readers read and then write. Each renews its leases.
pub(super) fn upgrade(options: &mut Options) {
    for worker in options.workers.iter_mut().filter(|worker| worker.mode == WorkerMode::default()) {
        (worker.mode, worker.shared, worker.renew) = (WorkerMode::new("upgrade"), false, true);
    }
}
