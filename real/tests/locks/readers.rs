//! Locks for readers and a writer on live servers: readers together, a writer alone, and served however many
//! readers come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dlock::redis::Waiting;
use dlock::{
    AcquireError, AnyBackend, Cap, Lock, LockKey, Options, TokioRuntime, TryAcquireError, UpgradeError,
};
use real::place::Place;
use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper};
use real::systems::System;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

const TTL: Duration = Duration::from_secs(2);

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

/// Returns a client of its own, of locks with readers.
fn client(place: &Place) -> Client {
    let backend = place.backend(TTL, Waiting::Called, TokioRuntime::new(Handle::current())).unwrap();
    let mut options = Options::new(TTL);
    options.readers = true;
    Lock::new(backend, options).unwrap()
}

fn key(id: &str) -> LockKey {
    LockKey::new("readers", id).unwrap()
}

#[tokio::test]
async fn readers_share_the_lock_and_a_writer_has_it_alone() {
    let servers = Servers::start();
    for place in servers.places() {
        let (one, two, three) = (client(&place), client(&place), client(&place));
        let key = key("share");
        let first = one.acquire_shared(&key, one.deadline_in(TTL)).await.unwrap();
        let second = two.acquire_shared(&key, two.deadline_in(TTL)).await.unwrap();
        assert_eq!((first.beside(), second.beside()), (&[][..], &[first.fence()][..]), "{place:?}");
        assert!(first.is_shared() && first.fence() < second.fence(), "{place:?}");
        assert_eq!(first.upgrade(), Err(UpgradeError::Shared));
        let refused = three.try_acquire(&key).await.unwrap_err();
        assert!(matches!(refused, TryAcquireError::Taken { .. }), "{place:?}: {refused}");
        // A writer that gave up bars nobody.
        assert!(three.cleaned_up(three.deadline_in(TTL)).await);
        let third = three.acquire_shared(&key, three.deadline_in(TTL)).await.unwrap();

        for reader in [first, second, third] {
            reader.renew().await.unwrap();
            reader.release().await.unwrap();
        }
        let writer = three.try_acquire(&key).await.unwrap();
        assert_eq!((writer.is_shared(), writer.beside(), writer.upgrade()), (false, &[][..], Ok(())));
        writer.renew().await.unwrap();
        let refused = one.request(&key).shared().try_acquire().await.unwrap_err();
        assert!(matches!(refused, TryAcquireError::Taken { .. }), "{place:?}: {refused}");
        let newest = writer.fence();
        writer.release().await.unwrap();
        let reader = one.acquire_shared(&key, one.deadline_in(TTL)).await.unwrap();
        assert!(reader.fence() > newest, "{place:?}");
        reader.release().await.unwrap();
    }
}

/// Reads again and again until `stop`; counts the rounds.
async fn read_on(lock: Client, stop: Arc<AtomicBool>, inside: Arc<AtomicUsize>, rounds: Arc<AtomicUsize>) {
    while !stop.load(Ordering::SeqCst) {
        let deadline = lock.deadline_in(Duration::from_secs(30));
        let reader = lock.acquire_shared(&key("stream"), deadline).await.unwrap();
        inside.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(60)).await;
        inside.fetch_sub(1, Ordering::SeqCst);
        rounds.fetch_add(1, Ordering::SeqCst);
        reader.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_writer_gets_in_while_readers_keep_coming() {
    let servers = Servers::start();
    for place in servers.places() {
        let (stop, inside, rounds) = <(Arc<AtomicBool>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let mut readers = JoinSet::new();
        for number in 0..6 {
            let reads = read_on(client(&place), Arc::clone(&stop), Arc::clone(&inside), Arc::clone(&rounds));
            readers.spawn(async move {
                tokio::time::sleep(Duration::from_millis(10 * number)).await;
                reads.await;
            });
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let writer = client(&place);
        for _ in 0..3 {
            let begun = Instant::now();
            let handle =
                writer.acquire(&key("stream"), writer.deadline_in(Duration::from_secs(10))).await.unwrap();
            assert_eq!(inside.load(Ordering::SeqCst), 0, "{place:?}");
            // They leave 60 ms after they came; the writer retries within its backoff of 2 s.
            assert!(begun.elapsed() < Duration::from_secs(5), "{place:?}: {:?}", begun.elapsed());
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(inside.load(Ordering::SeqCst), 0, "{place:?}");
            handle.release().await.unwrap();
            let before = rounds.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(2500)).await;
            assert!(rounds.load(Ordering::SeqCst) > before, "{place:?}: the readers go on");
        }
        stop.store(true, Ordering::SeqCst);
        readers.join_all().await;
    }
}

#[tokio::test]
async fn a_writer_waits_for_the_lease_of_a_dead_reader_alone() {
    let servers = Servers::start();
    for place in servers.places() {
        let (one, two) = (client(&place), client(&place));
        let key = key("ends");
        let left = one.acquire_shared(&key, one.deadline_in(TTL)).await.unwrap();
        let begun = Instant::now();
        left.leave();
        let writer = two.acquire(&key, two.deadline_in(TTL * 5)).await.unwrap();
        assert!(begun.elapsed() > TTL - Duration::from_millis(200), "{place:?}: {:?}", begun.elapsed());
        writer.keep_alive(Cap(Duration::from_secs(60)));
        tokio::time::sleep(TTL * 2).await;
        // A renewed writer outlives its TTL.
        let refused =
            one.acquire_shared(&key, one.deadline_in(Duration::from_millis(100))).await.unwrap_err();
        assert!(matches!(refused, AcquireError::Taken { .. }), "{place:?}: {refused}");
        writer.release().await.unwrap();
    }
}

#[tokio::test]
async fn readers_need_a_lock_with_readers() {
    let stage = Stage::new().unwrap();
    let three = Redis::start_many(&stage, 3).unwrap();
    let runtime = || TokioRuntime::new(Handle::current());
    let redlock = Place::new(System::Redlock, three.iter().map(Redis::address).collect());
    let mut options = Options::new(TTL);
    options.readers = true;
    let error = Lock::new(redlock.backend(TTL, Waiting::Called, runtime()).unwrap(), options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "redlock has no locks for readers and a writer: use Redis, etcd or ZooKeeper, or a mutex"
    );
    let redis = Place::new(System::Redis, vec![three[0].address()]);
    let mutex =
        Lock::new(redis.backend(TTL, Waiting::Called, runtime()).unwrap(), Options::new(TTL)).unwrap();
    let error = mutex.acquire_shared(&key("none"), mutex.deadline_in(TTL)).await.unwrap_err();
    assert_eq!(error, AcquireError::NoReaders);
}
