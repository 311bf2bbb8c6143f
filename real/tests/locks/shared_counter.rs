//! Shared counters on a live Redis Cluster of one node, which refuses a script whose keys lie in different
//! slots: the tokens of each key grow, and few counters stay behind.

use std::time::Duration;

use dlock::election::Election;
use dlock::redis::{Redis as Backend, RedisOptions, TokenSource};
use dlock::{Cap, Lock, LockKey, Options, TokioRuntime};
use real::servers::{Redis, Stage};
use redis::Commands;
use tokio::runtime::Handle;

const TTL: Duration = Duration::from_secs(2);

/// Two keys of one hash slot.
const SLOT_MATES: [&str; 2] = ["42", "9487"];

/// A live server, and clients of it.
struct Scene {
    redis: Redis,
    connection: redis::Connection,
    _stage: Stage,
}

impl Scene {
    fn new() -> Self {
        let stage = Stage::new().unwrap();
        let redis = Redis::start_cluster(&stage, "redis").unwrap();
        let client = redis::Client::open(format!("redis://{}", redis.address())).unwrap();
        let mut connection = client.get_connection().unwrap();
        let mut served = redis::cmd("CLUSTER");
        () = served.arg("ADDSLOTSRANGE").arg(0).arg(16_383).query(&mut connection).unwrap();
        while !redis::cmd("CLUSTER")
            .arg("INFO")
            .query::<String>(&mut connection)
            .unwrap()
            .contains("state:ok")
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { connection, redis, _stage: stage }
    }

    fn lock(&self, tokens: TokenSource) -> Lock<Backend<TokioRuntime>> {
        let mut options = RedisOptions::default();
        options.tokens = tokens;
        let runtime = TokioRuntime::new(Handle::current());
        Lock::new(Backend::new(runtime, &self.redis.address(), options).unwrap(), Options::new(TTL)).unwrap()
    }

    /// Returns the counters that the server keeps.
    fn counters(&mut self) -> Vec<String> {
        let keys: Vec<String> = self.connection.keys("lock:v1:*").unwrap();
        keys.into_iter().filter(|key| !key.ends_with(":owner")).collect()
    }
}

fn key(id: &str) -> LockKey {
    LockKey::new("orders", id).unwrap()
}

async fn grant(lock: &Lock<Backend<TokioRuntime>>, id: &str) -> u64 {
    let handle = lock.acquire(&key(id), lock.deadline_in(TTL)).await.unwrap();
    let token = handle.fence().as_u64();
    handle.release().await.unwrap();
    token
}

#[tokio::test]
async fn keys_of_a_slot_share_one_counter_and_keep_their_order() {
    let mut scene = Scene::new();
    let lock = scene.lock(TokenSource::Shared);
    let mut tokens = Vec::new();
    for round in 0..3 {
        tokens.push(grant(&lock, SLOT_MATES[round % 2]).await);
    }
    assert_eq!(tokens, [1, 2, 3]);
    let counters = scene.counters();
    assert_eq!(counters.len(), 1, "{counters:?}");
    let mut slot = |text: &str| -> u64 {
        redis::cmd("CLUSTER").arg("KEYSLOT").arg(text).query(&mut scene.connection).unwrap()
    };
    let expected = slot(&key("42").owner_key());
    assert!(expected == slot(&counters[0]) && expected == slot(&key("9487").owner_key()));
}

#[tokio::test]
async fn ten_thousand_keys_leave_no_counter_each() {
    let mut scene = Scene::new();
    let lock = scene.lock(TokenSource::Shared);
    for number in 0..10_000 {
        grant(&lock, &number.to_string()).await;
    }
    let left = scene.counters().len();
    assert!(left < 8_000, "{left} counters: 10,000 keys in 16,384 slots share some");
    for number in 0..10_000 {
        grant(&lock, &number.to_string()).await;
    }
    assert_eq!(scene.counters().len(), left);
}

#[tokio::test]
async fn a_key_is_moved_by_its_next_grant_and_loses_its_own_counter() {
    let mut scene = Scene::new();
    let (own, shared) = (scene.lock(TokenSource::Counter), scene.lock(TokenSource::Shared));
    for expected in 1..=5 {
        assert_eq!(grant(&own, "42").await, expected);
    }
    assert_eq!(grant(&shared, "42").await, 6);
    assert!(!scene.counters().contains(&key("42").fence_key()));
    // Both kinds of client exclude each other all the same.
    let held = shared.acquire(&key("42"), shared.deadline_in(TTL)).await.unwrap();
    assert!(own.try_acquire(&key("42")).await.is_err());
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_lease_is_renewed_observed_and_released() {
    let mut scene = Scene::new();
    let lock = scene.lock(TokenSource::Shared);
    let election = Election::new(lock.clone(), key("42"), Cap(Duration::from_secs(60))).unwrap();
    let leadership = election.campaign(lock.deadline_in(TTL)).await.unwrap();
    // Another key of the slot counts on.
    assert_eq!(grant(&lock, SLOT_MATES[1]).await, 2);
    let seen = election.observe().next().await.unwrap();
    assert_eq!((seen.term, leadership.term()), (leadership.term(), seen.term));
    tokio::time::sleep(TTL + TTL / 2).await;
    let stored: String = scene.connection.get(key("42").owner_key()).unwrap();
    assert!(stored.ends_with("#1"), "renewed: {stored}");
    leadership.resign().await.unwrap();
    let stored: Option<String> = scene.connection.get(key("42").owner_key()).unwrap();
    assert_eq!(stored, None);
    assert_eq!(grant(&lock, "42").await, 3);
}
