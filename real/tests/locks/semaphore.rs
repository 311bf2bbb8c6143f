//! Semaphores on live servers: no more holders than permits, tokens of their own, and permits that come free.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dlock::redis::Waiting;
use dlock::{AnyBackend, Lock, LockKey, Options, TokioRuntime, TryAcquireError};
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

/// Returns a client of its own that knows of two permits.
fn client(place: &Place) -> Lock<AnyBackend<TokioRuntime>> {
    let backend = place.backend(TTL, Waiting::Called, TokioRuntime::new(Handle::current())).unwrap();
    let mut options = Options::new(TTL);
    options.permits = 2;
    Lock::new(backend, options).unwrap()
}

fn key(id: &str) -> LockKey {
    LockKey::new("semaphore", id).unwrap()
}

#[tokio::test]
async fn two_of_eight_clients_hold_permits_at_once() {
    let servers = Servers::start();
    for place in servers.places() {
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut clients = JoinSet::new();
        for _ in 0..8 {
            let (lock, inside, most) = (client(&place), Arc::clone(&inside), Arc::clone(&most));
            clients.spawn(async move {
                let mut tokens = Vec::new();
                for _ in 0..3 {
                    let permit =
                        lock.acquire(&key("crowd"), lock.deadline_in(Duration::from_secs(60))).await.unwrap();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    assert!(permit.beside().len() < 2 && !permit.beside().contains(&permit.fence()));
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    tokens.push(permit.fence());
                    permit.release().await.unwrap();
                }
                tokens
            });
        }
        let tokens: Vec<_> = clients.join_all().await.concat();
        let distinct: BTreeSet<_> = tokens.iter().collect();
        assert_eq!((tokens.len(), distinct.len()), (24, 24), "{place:?}");
        assert_eq!(most.load(Ordering::SeqCst), 2, "{place:?}");
    }
}

#[tokio::test]
async fn a_permit_comes_free_by_its_release_or_its_end() {
    let servers = Servers::start();
    for place in servers.places() {
        let (one, two, three) = (client(&place), client(&place), client(&place));
        let key = key("ends");
        let first = one.try_acquire(&key).await.unwrap();
        let second = two.try_acquire(&key).await.unwrap();
        assert_eq!(second.beside(), [first.fence()], "{place:?}");
        let refused = three.try_acquire(&key).await.unwrap_err();
        assert!(matches!(refused, TryAcquireError::Taken { .. }), "{place:?}: {refused}");

        let newer = second.fence();
        second.release().await.unwrap();
        let third = three.acquire(&key, three.deadline_in(TTL * 5)).await.unwrap();
        assert!(third.fence() > newer, "{place:?}");
        assert_eq!(third.beside(), [first.fence()], "{place:?}");

        // A renewed permit outlives its TTL; the one that is left ends by it.
        first.keep_alive(dlock::Cap(Duration::from_secs(60)));
        third.leave();
        let fourth = two.acquire(&key, two.deadline_in(TTL * 5)).await.unwrap();
        assert_eq!(fourth.beside(), [first.fence()], "{place:?}");
        assert!(first.is_valid(), "{place:?}");
        first.release().await.unwrap();
        fourth.release().await.unwrap();
    }
}

#[tokio::test]
async fn redlock_refuses_several_permits() {
    let stage = Stage::new().unwrap();
    let three = Redis::start_many(&stage, 3).unwrap();
    let place = Place::new(System::Redlock, three.iter().map(Redis::address).collect());
    let backend = place.backend(TTL, Waiting::Called, TokioRuntime::new(Handle::current())).unwrap();
    let mut options = Options::new(TTL);
    options.permits = 2;
    let error = Lock::new(backend, options).unwrap_err().to_string();
    assert_eq!(error, "redlock has no locks with 2 permits: use Redis, etcd or ZooKeeper, or one permit");
}
