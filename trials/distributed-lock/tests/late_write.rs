//! A late write under the lock of distributed-lock-redis 0.2.

mod world;

use std::time::Duration;

use distributed_lock_core::traits::{DistributedLock, LockHandle};
use sim::Process;

use crate::world::{LOCK, lock, redis};

/// Writes to a plain resource under the lock, and stops at the library's signal that the lock is lost.
async fn write(process: Process) {
    let Ok(lock) = lock().await else { return };
    for round in 0..3 {
        let Ok(handle) = lock.acquire(Some(Duration::from_secs(5))).await else { continue };
        let inside = sim::section(LOCK);
        let owner = format!("{}-{}-{round}", process.name(), process.life());
        let mut lost = handle.lost_token().clone();
        tokio::select! {
            biased;
            _ = lost.changed() => {}
            _ = common::deposit(&owner) => {}
        }
        drop(inside);
        drop(handle.release().await);
    }
}

#[test]
fn a_pause_makes_a_write_late() {
    common::expect_late_write("distributed_lock_late_write", redis, write);
}
