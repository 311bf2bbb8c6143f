//! Finds the mistake of a reentrant lock in a hash of Redis: it releases without comparing owners, so it can
//! delete the lock of another owner. A second lock compares them, and no schedule breaks it. The scripts are
//! those of Redisson's `RLock`: each field is an owner, and its value is the number of times that this owner
//! has the lock.
//!
//! `cargo run --example hash_lock`

use std::time::Duration;

use redis::{RedisResult, Script, aio::MultiplexedConnection};
use sim::servers::redis::RedisHost;
use sim::{Process, Sim};

/// The lock's key on the server.
const KEY: &str = "account-7";

/// The time to live of the lock.
const TTL: Duration = Duration::from_secs(1);

/// Acquires, once more if the owner has the lock already. Source: `RedissonLock.tryLockInnerAsync`.
const ACQUIRE: &str = "
    if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
      redis.call('hincrby', KEYS[1], ARGV[2], 1)
      redis.call('pexpire', KEYS[1], ARGV[1])
      return nil
    end
    return redis.call('pttl', KEYS[1])";

/// Releases once, if the owner has the lock. Source: `RedissonLock.unlockInnerAsync`.
const RELEASE: &str = "
    if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
      return nil
    end
    if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
      redis.call('pexpire', KEYS[1], ARGV[1])
      return 0
    end
    redis.call('del', KEYS[1])
    return 1";

/// The mistake: it does not compare owners, so it can delete the lock of another owner.
const RELEASE_OF_ANY: &str = "
    if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
      redis.call('pexpire', KEYS[1], ARGV[1])
      return 0
    end
    redis.call('del', KEYS[1])
    return 1";

fn main() {
    for (name, world) in [("releases_any", releases_any as fn(&mut Sim)), ("releases_own", releases_own)] {
        match sim::check(name, world).keep_in("target/sim-regressions").schedules(300).find() {
            Ok(Some(failure)) => println!("{failure}\n"),
            Ok(None) => println!("no schedule broke {name}"),
            Err(problem) => eprintln!("{problem}"),
        }
    }
}

/// Builds the world of the lock with the mistake.
pub fn releases_any(sim: &mut Sim) {
    transfers(sim, RELEASE_OF_ANY);
}

/// Builds the world of its correct twin.
pub fn releases_own(sim: &mut Sim) {
    transfers(sim, RELEASE);
}

fn transfers(sim: &mut Sim, release: &'static str) {
    // The history knows the fields of the hash as the owners of the lock `account:7`.
    sim.host("redis", RedisHost::new().lock_key(KEY, "account:7")).key("account:7").scale(TTL);
    for name in ["a", "b"] {
        sim.process(name, move |process| async move {
            for _ in 0..3 {
                // A request that fails ends the round; the next one begins anew.
                let _ = transfer(&process, release).await;
                process.sleep(Duration::from_millis(20)).await;
            }
        });
    }
}

/// Acquires twice, as a function that calls another one with the same lock does.
async fn transfer(process: &Process, release: &str) -> RedisResult<()> {
    let mut redis = sim::clients::redis(process, "redis:6379").await?;
    let owner = format!("{}:{:016x}", process.name(), process.random());
    while let Some(_remaining_ms) = call(&mut redis, ACQUIRE, &owner).await? {
        process.sleep(Duration::from_millis(50)).await;
    }
    let section = process.section("account:7");
    if call(&mut redis, ACQUIRE, &owner).await?.is_some() {
        // The lock expired, and another owner has it.
        return Ok(());
    }
    process.point("moving money");
    process.sleep(Duration::from_millis(100)).await;
    call(&mut redis, release, &owner).await?;
    drop(section);
    call(&mut redis, release, &owner).await.map(drop)
}

async fn call(redis: &mut MultiplexedConnection, script: &str, owner: &str) -> RedisResult<Option<i64>> {
    let ttl_ms = TTL.as_millis() as u64;
    Script::new(script).key(KEY).arg(ttl_ms).arg(owner).invoke_async(redis).await
}
