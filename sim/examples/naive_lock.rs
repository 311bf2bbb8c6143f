//! Finds the mistake of a lock that many tutorials show, `SET key NX PX` and later a bare `DEL`: it releases
//! the lock of another owner.
//!
//! `cargo run --example naive_lock`

use std::time::Duration;

use redis::{AsyncCommands, ExistenceCheck, RedisResult, SetExpiry, SetOptions};
use sim::servers::redis::RedisHost;
use sim::{Process, Sim};

/// The lock's key on the server.
const KEY: &str = "account-7";

/// The time to live of the lock.
const TTL: Duration = Duration::from_secs(1);

fn main() {
    let found = sim::check("naive_lock", transfers).keep_in("target/sim-regressions").schedules(2_000).find();
    match found {
        Ok(Some(failure)) => println!("{failure}"),
        Ok(None) => println!("no schedule broke it"),
        Err(problem) => eprintln!("{problem}"),
    }
}

/// Builds the world: a Redis, and two processes that move money on one account.
fn transfers(sim: &mut Sim) {
    // The history knows the key as the lock `account:7`.
    sim.host("redis", RedisHost::new().lock_key(KEY, "account:7")).key("account:7").scale(TTL);
    for name in ["a", "b"] {
        sim.process(name, |process| async move {
            for _ in 0..3 {
                // A broken connection ends the round; the next round connects again.
                let _ = transfer(&process).await;
                process.sleep(Duration::from_millis(20)).await;
            }
        });
    }
}

/// Makes one transfer under the lock.
async fn transfer(process: &Process) -> RedisResult<()> {
    let mut redis = sim::clients::redis(process, "redis:6379").await?;
    while !acquire(process, &mut redis).await? {
        process.sleep(Duration::from_millis(50)).await;
    }
    let section = process.section("account:7");
    process.point("working");
    process.sleep(Duration::from_millis(100)).await;
    drop(section);
    // The mistake: by now the key may be another owner's.
    redis.del(KEY).await
}

async fn acquire(process: &Process, redis: &mut redis::aio::MultiplexedConnection) -> RedisResult<bool> {
    let options = SetOptions::default()
        .conditional_set(ExistenceCheck::NX)
        .with_expiration(SetExpiry::PX(TTL.as_millis() as u64));
    let set: Option<String> = redis.set_options(KEY, process.random(), options).await?;
    Ok(set.is_some())
}
