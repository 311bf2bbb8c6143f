//! Locks with a limit of their waiters on live servers: one more is refused at once, a place is free once its
//! waiter has left or died, and waiters are served in order.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dlock::redis::Waiting;
use dlock::{
    AcquireError, AnyBackend, Backoff, Handle as Lease, Lock, LockKey, Options, TokioRuntime, TryAcquireError,
};
use futures_util::future::join_all;
use real::place::Place;
use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper};
use real::systems::System;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

const TTL: Duration = Duration::from_secs(2);

/// The most that may wait.
const WAITERS: u32 = 2;

/// The live servers of one test.
struct Servers {
    redis: Redis,
    etcd: EtcdCluster,
    zookeeper: ZooKeeper,
    _stage: Stage,
}

impl Servers {
    fn start() -> Self {
        let stage = Stage::new().unwrap();
        let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
        let (etcd, zookeeper) = (EtcdCluster::start_one(&stage).unwrap(), ZooKeeper::start(&stage).unwrap());
        Self { redis, etcd, zookeeper, _stage: stage }
    }

    fn places(&self) -> [Place; 3] {
        [
            Place::new(System::Redis, vec![self.redis.address()]),
            Place::new(System::Etcd, vec![self.etcd.addresses()[0].clone()]),
            Place::new(System::Zookeeper, vec![self.zookeeper.address()]),
        ]
    }
}

type Client = Lock<AnyBackend<TokioRuntime>>;

type Acquired = Result<Lease<AnyBackend<TokioRuntime>>, AcquireError>;

/// Returns a client of its own, of locks for which two may wait.
fn client(place: &Place) -> Client {
    // A dead waiter of Redis is in the queue for two backoffs and two requests: 2 s.
    client_with(place, Backoff { base: Duration::from_millis(50), max: Duration::from_millis(500) })
}

/// Returns a client that hardly asks again by itself.
fn patient_client(place: &Place) -> Client {
    client_with(place, Backoff { base: Duration::from_secs(60), max: Duration::from_secs(60) })
}

fn client_with(place: &Place, backoff: Backoff) -> Client {
    let mut options = Options::new(TTL);
    (options.waiters_max, options.backoff) = (Some(WAITERS), backoff);
    of_options(place, options)
}

fn of_options(place: &Place, options: Options) -> Client {
    Lock::new(place.backend(TTL, Waiting::Called, TokioRuntime::new(Handle::current())).unwrap(), options)
        .unwrap()
}

fn key(id: &str) -> LockKey {
    LockKey::new("bounded", id).unwrap()
}

/// Begins to wait for the lock by a client of its own.
fn wait(place: &Place, key: &LockKey) -> JoinHandle<Acquired> {
    let (lock, key) = (client(place), key.clone());
    tokio::spawn(async move { lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await })
}

/// Returns how many wait, once an acquire is refused, and asserts that it is refused at once.
async fn refused(place: &Place, key: &LockKey) -> u32 {
    let lock = client(place);
    let begun = Instant::now();
    let error = lock.acquire(key, lock.deadline_in(Duration::from_secs(60))).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5), "{place:?}: {:?}", begun.elapsed());
    assert!(lock.cleaned_up(lock.deadline_in(Duration::from_secs(5))).await, "{place:?}");
    match error {
        AcquireError::QueueFull { waiting, max: WAITERS } => waiting,
        other => panic!("{place:?}: {other}"),
    }
}

/// Waits until the queue is full: a try does not wait, so that it takes no place.
async fn fill(place: &Place, key: &LockKey) -> [JoinHandle<Acquired>; 2] {
    let first = wait(place, key);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let second = wait(place, key);
    tokio::time::sleep(Duration::from_millis(300)).await;
    [first, second]
}

#[tokio::test]
async fn one_more_than_may_wait_is_refused_and_gets_in_once_one_has_left() {
    let servers = Servers::start();
    for place in servers.places() {
        let (holder, key) = (client(&place), key("full"));
        let held = holder.acquire(&key, holder.deadline_in(TTL)).await.unwrap();
        held.keep_alive(dlock::Cap(Duration::from_secs(60)));
        let [first, second] = fill(&place, &key).await;
        assert_eq!(refused(&place, &key).await, WAITERS, "{place:?}");
        let taken = client(&place).try_acquire(&key).await.unwrap_err();
        assert!(matches!(taken, TryAcquireError::Taken { .. }), "{place:?}: {taken}");

        // A waiter that is dropped leaves nothing behind, and its place is free.
        second.abort();
        assert!(second.await.is_err_and(|error| error.is_cancelled()), "{place:?}");
        tokio::time::sleep(Duration::from_millis(300)).await;
        let third = wait(&place, &key);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(refused(&place, &key).await, WAITERS, "{place:?}");

        let mut newest = held.fence();
        held.release().await.unwrap();
        for waiter in [first, third] {
            let held = waiter.await.unwrap().unwrap();
            assert!(held.fence() > newest, "{place:?}");
            newest = held.fence();
            held.renew().await.unwrap();
            held.release().await.unwrap();
        }
    }
}

#[tokio::test]
async fn those_who_wait_are_served_in_the_order_of_their_requests() {
    let servers = Servers::start();
    for place in servers.places() {
        let (holder, key) = (client(&place), key("order"));
        let order = Arc::new(Mutex::new(Vec::new()));
        let held = holder.acquire(&key, holder.deadline_in(TTL)).await.unwrap();
        held.keep_alive(dlock::Cap(Duration::from_secs(60)));
        let waiters = fill(&place, &key).await;
        let served = waiters.into_iter().enumerate().map(|(number, waiter)| {
            let order = Arc::clone(&order);
            tokio::spawn(async move {
                let held = waiter.await.unwrap().unwrap();
                order.lock().unwrap().push(number);
                tokio::time::sleep(Duration::from_millis(50)).await;
                held.release().await.unwrap();
            })
        });
        let served: Vec<_> = served.collect();
        let begun = Instant::now();
        held.release().await.unwrap();
        for served in served {
            served.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1], "{place:?}");
        // Each release wakes the next one: nobody polls for it.
        assert!(begun.elapsed() < Duration::from_millis(450), "{place:?}: {:?}", begun.elapsed());
    }
}

/// Waits for the lock on a runtime of its own that then stands still, as a process that hangs: nothing is
/// released, and no connection is closed.
fn die_while_waiting(place: &Place, key: &LockKey) {
    let (place, key) = (place.clone(), key.clone());
    let thread = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            drop(wait(&place, &key));
            tokio::time::sleep(Duration::from_millis(300)).await;
        });
        std::mem::forget(runtime);
    });
    thread.join().unwrap();
}

#[tokio::test]
async fn a_waiter_that_died_blocks_nobody_for_long() {
    let servers = Servers::start();
    for place in servers.places() {
        let (holder, key) = (client(&place), key("dead"));
        let held = holder.acquire(&key, holder.deadline_in(TTL)).await.unwrap();
        held.keep_alive(dlock::Cap(Duration::from_secs(60)));
        die_while_waiting(&place, &key);
        let begun = Instant::now();
        let next = wait(&place, &key);
        tokio::time::sleep(Duration::from_millis(300)).await;
        held.release().await.unwrap();
        let next = next.await.unwrap().unwrap();
        // A session ends a TTL after its client, and a place in Redis two backoffs and two requests: 2 s.
        assert!(begun.elapsed() < TTL * 4, "{place:?}: {:?}", begun.elapsed());
        next.release().await.unwrap();
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_queue_in_which_nobody_waits() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let place = Place::new(System::Redis, vec![redis.address()]);
    let (holder, key) = (client(&place), key("trace"));
    let held = holder.acquire(&key, holder.deadline_in(TTL)).await.unwrap();
    let waiter = wait(&place, &key);
    until(&redis, |stored| stored.contains(&key.waiters_key()) && stored.contains(&key.patience_key())).await;
    waiter.abort();
    until(&redis, |stored| !stored.contains(&key.waiters_key()) && !stored.contains(&key.patience_key()))
        .await;
    held.release().await.unwrap();
    assert_eq!(stored(&redis).await, [key.fence_key()]);
}

/// Two releases at once wake the first waiter, and the first one wakes the second.
#[tokio::test]
async fn permits_are_granted_in_the_order_of_the_requests() {
    let servers = Servers::start();
    for place in servers.places() {
        let permits = || {
            let mut options = Options::new(TTL);
            (options.waiters_max, options.permits) = (Some(WAITERS), 2);
            // Nobody polls for a permit.
            options.backoff = Backoff { base: Duration::from_secs(60), max: Duration::from_secs(60) };
            of_options(&place, options)
        };
        let (holder, key) = (permits(), key("permits"));
        let deadline = holder.deadline_in(Duration::from_secs(60));
        let held =
            [holder.acquire(&key, deadline).await.unwrap(), holder.acquire(&key, deadline).await.unwrap()];
        for held in &held {
            held.keep_alive(dlock::Cap(Duration::from_secs(60)));
        }
        let mut waiters = Vec::new();
        for _ in 0..2 {
            let (lock, key) = (permits(), key.clone());
            waiters.push(tokio::spawn(async move { lock.acquire(&key, deadline).await.unwrap() }));
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let refused = permits().acquire(&key, deadline).await.unwrap_err();
        assert!(matches!(refused, AcquireError::QueueFull { waiting: WAITERS, .. }), "{place:?}: {refused}");
        let tokens = held.each_ref().map(Lease::fence);
        for released in join_all(held.map(Lease::release)).await {
            released.unwrap();
        }
        let mut granted = Vec::new();
        for waiter in waiters {
            let waited = tokio::time::timeout(Duration::from_secs(5), waiter).await;
            granted.push(waited.expect("nothing woke it").unwrap());
        }
        let tokens = tokens.into_iter().chain(granted.iter().map(Lease::fence));
        assert!(tokens.is_sorted(), "{place:?}");
        for granted in granted {
            granted.renew().await.unwrap();
            granted.release().await.unwrap();
        }
    }
}

/// A try takes no place. If its script is the one that removes the dead waiter, it must wake the next one.
#[tokio::test]
async fn a_try_that_finds_a_dead_waiter_wakes_the_next_one() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (place, key) = (Place::new(System::Redis, vec![redis.address()]), key("wakes"));
    let mut dead = redis::Client::open(format!("redis://{}", redis.address())).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    for (set, score) in [(key.waiters_key(), 1), (key.patience_key(), now + 700)] {
        redis::cmd("ZADD").arg(set).arg(score).arg("dead:1").exec(&mut dead).unwrap();
    }
    let patient = patient_client(&place);
    let waiter = tokio::spawn({
        let key = key.clone();
        async move { patient.acquire(&key, patient.deadline_in(Duration::from_secs(60))).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiter.is_finished());
    let taken = client(&place).try_acquire(&key).await.unwrap_err();
    assert!(matches!(taken, TryAcquireError::Taken { .. }), "{taken}");
    let held = tokio::time::timeout(Duration::from_secs(3), waiter).await.expect("nothing woke it");
    held.unwrap().unwrap().release().await.unwrap();
}

/// Waits until the stored keys are such.
async fn until(redis: &Redis, are_so: impl Fn(&[String]) -> bool) {
    let begun = Instant::now();
    while !are_so(&stored(redis).await) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", stored(redis).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns the keys that the server stores.
async fn stored(redis: &Redis) -> Vec<String> {
    let client = redis::Client::open(format!("redis://{}", redis.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap()
}

#[tokio::test]
async fn redlock_has_no_queue() {
    let stage = Stage::new().unwrap();
    let three = Redis::start_many(&stage, 3).unwrap();
    let runtime = || TokioRuntime::new(Handle::current());
    let redlock = Place::new(System::Redlock, three.iter().map(Redis::address).collect());
    let mut options = Options::new(TTL);
    options.waiters_max = Some(WAITERS);
    let error = Lock::new(redlock.backend(TTL, Waiting::Called, runtime()).unwrap(), options).unwrap_err();
    assert!(error.to_string().contains("redlock can't limit the waiters"), "{error}");
}
