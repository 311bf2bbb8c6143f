//! redis-lock 0.5: `lock_across` on one Redis.

use std::sync::Arc;
use std::time::Duration;

use common::TTL;
use redis_lock::{LockAcrossOptions, lock_across};
use redis27::Client;
use sim::servers::redis::RedisHost;
use sim::{Process, Sim};

/// The library adds the prefix.
const LOCK: &str = "orders:42";
const KEY: &str = "redlock:orders:42";

fn redis(sim: &mut Sim) -> &mut Sim {
    sim.host("redis", RedisHost::new().lock_key(KEY, LOCK)).key(LOCK).scale(TTL)
}

/// Does `work` under the lock three times.
async fn rounds<F>(work: impl Fn(u32) -> F) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    F: Future<Output = ()> + 'static,
{
    let client = Client::open("redis://redis:6379")?;
    for round in 0..3 {
        let connection = client.get_multiplexed_async_connection().await?;
        let connections = [Arc::new(tokio::sync::Mutex::new(connection))];
        let options = LockAcrossOptions { ttl: TTL, ..LockAcrossOptions::default() };
        let work = work(round);
        let inside = async move {
            let _inside = sim::section(LOCK);
            work.await;
        };
        let _ = lock_across(&connections, LOCK, inside, options).await;
    }
    Ok(())
}

async fn wait(_: u32) {
    sim::point("working");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Writes to a plain resource under the lock.
async fn write(process: Process) {
    let work = |round| {
        let owner = format!("{}-{}-{round}", process.name(), process.life());
        async move { drop(common::deposit(&owner).await) }
    };
    drop(rounds(work).await);
}

#[test]
fn lock_across_one_redis() {
    sim::check("redis_lock", |sim: &mut Sim| {
        redis(sim);
        for name in ["a", "b"] {
            sim.process(name, |_| async { drop(rounds(wait).await) });
        }
    })
    .schedules(1000)
    .check_determinism()
    .run();
}

#[test]
fn a_pause_makes_a_write_late() {
    common::expect_late_write("redis_lock_late_write", redis, write);
}
