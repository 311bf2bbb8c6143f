//! distributed-lock-redis 0.2, on fred: a lock of each process's own, renewed in the background.

mod world;

use std::time::Duration;

use distributed_lock_core::error::LockResult;
use distributed_lock_core::traits::{DistributedLock, LockHandle};
use distributed_lock_redis::RedisDistributedLock;
use sim::Sim;

use crate::world::{LOCK, lock, redis};

async fn work(lock: &RedisDistributedLock) -> LockResult<()> {
    for _ in 0..3 {
        let handle = lock.acquire(Some(Duration::from_secs(5))).await?;
        let inside = sim::section(LOCK);
        sim::point("working");
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(inside);
        handle.release().await?;
    }
    Ok(())
}

/// The library numbers its owners in a static of the program: in a process of its own, a run has the same
/// owners each time.
#[test]
fn a_lock_of_each_process() {
    sim::check("distributed_lock", |sim: &mut Sim| {
        redis(sim).in_own_process();
        for name in ["a", "b"] {
            sim.process(name, |_| async {
                if let Ok(lock) = lock().await {
                    drop(work(&lock).await);
                }
            });
        }
    })
    .schedules(1000)
    .check_determinism()
    .run();
}
