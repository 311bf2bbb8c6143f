//! The Redis of the world, and the lock.

use common::TTL;
use distributed_lock_core::error::LockResult;
use distributed_lock_core::traits::LockProvider;
use distributed_lock_redis::{RedisDistributedLock, RedisLockProvider};
use sim::Sim;
use sim::servers::redis::RedisHost;

/// The library adds the prefix.
pub const LOCK: &str = "orders:42";
const KEY: &str = "distributed-lock:orders:42";

pub fn redis(sim: &mut Sim) -> &mut Sim {
    sim.host("redis", RedisHost::new().lock_key(KEY, LOCK)).key(LOCK).scale(TTL)
}

pub async fn lock() -> LockResult<RedisDistributedLock> {
    let provider = RedisLockProvider::builder().url("redis://redis:6379").expiry(TTL);
    let provider = provider.min_validity(TTL * 9 / 10).extension_cadence(TTL / 3).build().await?;
    Ok(provider.create_lock(LOCK))
}
