//! The blocking facade on a live Redis.

use std::thread;
use std::time::Duration;

use dlock::blocking::Lock;
use dlock::{
    AcquireError, Cap, ConnectError, LockKey, Options, OptionsError, Released, RenewError, TryAcquireError,
};
use real::servers::{Persistence, Redis, Stage};

use crate::eventually::eventually;

const SECOND: Duration = Duration::from_secs(1);

/// Starts a Redis; returns it with a lock on it, and a key.
fn lock(stage: &Stage, ttl: Duration) -> (Redis, Lock, LockKey) {
    let redis = Redis::start(stage, "blocking", Persistence::None).unwrap();
    let lock = Lock::connect(&format!("redis://{}", redis.address()), Options::new(ttl)).unwrap();
    (redis, lock, LockKey::new("orders", "42").unwrap())
}

/// Returns the milliseconds that the key of the lock has left on the server.
fn left_millis(redis: &Redis, key: &LockKey) -> i64 {
    let mut connection = redis::Client::open(format!("redis://{}", redis.address())).unwrap();
    redis::cmd("PTTL").arg(key.owner_key()).query(&mut connection).unwrap()
}

#[test]
fn threads_take_turns() {
    let stage = Stage::new().unwrap();
    let (_redis, lock, key) = lock(&stage, SECOND * 10);
    let work = |lock: Lock| {
        let key = key.clone();
        thread::spawn(move || {
            let handle = lock.acquire(&key, SECOND * 20).unwrap();
            let token = handle.fence();
            assert_eq!(handle.release().unwrap(), Released::Done);
            token
        })
    };
    let threads: Vec<_> = (0..8).map(|_| work(lock.clone())).collect();
    let mut tokens: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap().as_u64()).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (1..=8).collect::<Vec<_>>());
}

#[test]
fn it_reports_a_taken_lock_and_a_server_that_is_not_there() {
    let stage = Stage::new().unwrap();
    let (_redis, lock, key) = lock(&stage, SECOND * 10);
    let handle = lock.try_acquire(&key).unwrap();
    assert!(matches!(lock.try_acquire(&key), Err(TryAcquireError::Taken { .. })));
    let error = lock.acquire(&key, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, AcquireError::Taken { .. }), "{error}");
    drop(handle);
    lock.acquire(&key, SECOND * 5).unwrap();
    let error = Lock::connect("redis://127.0.0.1:1", Options::new(SECOND)).err().unwrap();
    assert!(matches!(error, ConnectError::Server(_)), "{error}");
}

#[test]
fn the_ttl_of_one_acquire_and_of_one_renewal_reach_the_server() {
    let stage = Stage::new().unwrap();
    let (redis, lock, key) = lock(&stage, SECOND * 10);
    let handle = lock.acquire_for(&key, SECOND * 300, SECOND).unwrap();
    assert!((200_000..=300_000).contains(&left_millis(&redis, &key)));
    handle.renew_for(SECOND * 60).unwrap();
    assert!((50_000..=60_000).contains(&left_millis(&redis, &key)));
    assert_eq!((handle.ttl(), handle.is_low()), (SECOND * 60, false));
    assert!(handle.remaining() < SECOND * 60);
    handle.renew().unwrap();
    assert!((50_000..=60_000).contains(&left_millis(&redis, &key)));
    let refused = handle.renew_for(Duration::ZERO).unwrap_err();
    assert!(matches!(refused, RenewError::Ttl(OptionsError::TtlZero { .. })), "{refused}");
    assert!(matches!(lock.try_acquire_for(&key, Duration::ZERO), Err(TryAcquireError::Ttl(_))));
}

#[test]
fn a_lease_is_renewed_in_the_background_and_may_be_left() {
    let stage = Stage::new().unwrap();
    let (redis, lock, key) = lock(&stage, Duration::from_millis(600));
    let handle = lock.try_acquire(&key).unwrap();
    handle.keep_alive(Cap(SECOND * 60));
    thread::sleep(SECOND * 2);
    assert!(handle.is_valid() && left_millis(&redis, &key) > 0);
    handle.leave();
    assert!(matches!(lock.try_acquire(&key), Err(TryAcquireError::Taken { .. })));
    lock.acquire(&key, SECOND * 10).unwrap();
}

#[tokio::test]
async fn it_may_be_called_and_dropped_inside_of_async_code() {
    let stage = Stage::new().unwrap();
    let (redis, lock, key) = lock(&stage, SECOND * 10);
    let handle = lock.try_acquire(&key).unwrap();
    drop(handle);
    eventually("the dropped handle releases", || (left_millis(&redis, &key) < 0).then_some(()));
    let handle = lock.try_acquire(&key).unwrap();
    let closed = lock.close(SECOND * 5);
    assert!(closed.released == 1 && closed.is_clean, "{closed:?}");
    assert!(!handle.is_valid());
    assert!(matches!(lock.try_acquire(&key), Err(TryAcquireError::Closed)));
}
