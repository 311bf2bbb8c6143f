//! rslock 0.10: a lock on one Redis and on three (Redlock), held by `lock`, `extend` and `using`.

use std::time::Duration;

use common::{KEY, TTL};
use rslock::{LockError, LockManager};
use sim::servers::redis::RedisHost;
use sim::{Process, Sim};

const ONE: [&str; 1] = ["redis://redis:6379"];
const THREE: [&str; 3] = ["redis://redis-1:6379", "redis://redis-2:6379", "redis://redis-3:6379"];

/// Works under the lock three times. `extends` prolongs the lease once.
async fn lock(urls: &[&str], extends: bool) -> Result<(), LockError> {
    let locks = LockManager::new(urls.to_vec());
    for _ in 0..3 {
        let Ok(mut lock) = locks.lock(KEY, TTL).await else { continue };
        let inside = sim::section(KEY);
        sim::point("working");
        tokio::time::sleep(Duration::from_millis(100)).await;
        if extends {
            match locks.extend(&lock, TTL).await {
                Ok(extended) => {
                    sim::reached!("a lease was extended");
                    lock = extended;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(_) => {
                    drop(inside);
                    locks.unlock(&lock).await;
                    continue;
                }
            }
        }
        drop(inside);
        locks.unlock(&lock).await;
    }
    Ok(())
}

/// Works under the lock for longer than its lease, which `using` renews.
async fn using(urls: &[&str]) -> Result<(), LockError> {
    let locks = LockManager::new(urls.to_vec());
    for _ in 0..2 {
        let work = async || {
            let _inside = sim::section(KEY);
            tokio::time::sleep(Duration::from_millis(1500)).await;
            sim::reached!("work outlived its first lease");
        };
        let _ = locks.using(KEY.as_bytes(), TTL, work).await;
    }
    Ok(())
}

fn three(sim: &mut Sim) {
    for name in ["redis-1", "redis-2", "redis-3"] {
        sim.host(name, RedisHost::new().lock_key(KEY, KEY));
    }
    sim.key(KEY).scale(TTL).quorum(["redis-1", "redis-2", "redis-3"]);
}

fn search(name: &str, world: impl Fn(&mut Sim) + Copy + Send + Sync + 'static) {
    sim::check(name, world).schedules(1000).check_determinism().run();
}

#[test]
fn lock_and_unlock_on_one_redis() {
    search("rslock_lock", |sim| {
        common::redis(sim);
        for name in ["a", "b"] {
            sim.process(name, |_| async { drop(lock(&ONE, false).await) });
        }
    });
}

#[test]
fn extend_on_one_redis() {
    search("rslock_extend", |sim| {
        common::redis(sim);
        for name in ["a", "b"] {
            sim.process(name, |_| async { drop(lock(&ONE, true).await) });
        }
    });
}

#[test]
fn using_on_one_redis() {
    search("rslock_using", |sim| {
        common::redis(sim);
        for name in ["a", "b"] {
            sim.process(name, |_| async { drop(using(&ONE).await) });
        }
    });
}

#[test]
fn lock_and_unlock_on_three() {
    search("rslock_redlock", |sim| {
        three(sim);
        for name in ["a", "b"] {
            sim.process(name, |_| async { drop(lock(&THREE, false).await) });
        }
    });
}

/// Writes to a plain resource under the lock.
async fn write(process: Process) {
    let locks = LockManager::new(ONE.to_vec());
    for round in 0..3 {
        let Ok(lock) = locks.lock(KEY, TTL).await else { continue };
        let inside = sim::section(KEY);
        drop(common::deposit(&format!("{}-{}-{round}", process.name(), process.life())).await);
        drop(inside);
        locks.unlock(&lock).await;
    }
}

#[test]
fn a_pause_makes_a_write_late() {
    common::expect_late_write("rslock_late_write", common::redis, write);
}
