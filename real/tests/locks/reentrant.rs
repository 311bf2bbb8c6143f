//! The reentrant lock on live servers: sections of one scope share a token, and others wait until the last of
//! them has left.

use std::time::Duration;

use dlock::{
    AcquireError, AnyBackend, EnterError, Left, Lock, LockKey, LostError, Options, Released, TokioRuntime,
};
use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper};

type Client = Lock<AnyBackend<TokioRuntime>>;

/// Far longer than any step takes.
const DEADLINE: Duration = Duration::from_secs(60);

async fn client(url: &str, ttl: Duration) -> Client {
    Lock::connect(url, Options::new(ttl)).await.unwrap()
}

fn key(id: &str) -> LockKey {
    LockKey::new("orders", id).unwrap()
}

/// Nests three sections, beside a stranger who waits until the last of them has left.
async fn a_stranger_waits_for_the_last_section(url: &str) {
    let (own, other) =
        (client(url, Duration::from_secs(10)).await, client(url, Duration::from_secs(10)).await);
    let (scope, key) = (own.scope(), key("1"));
    let enter = || scope.acquire(&key, own.deadline_in(DEADLINE));
    let (first, second) = tokio::join!(enter(), enter());
    let (first, second) = (first.unwrap(), second.unwrap());
    let third = enter().await.unwrap();
    assert_eq!([second.fence(), third.fence()], [first.fence(); 2], "{url}");
    // Scopes of one process are strangers to each other, as two processes are.
    for lock in [&own, &other] {
        let stranger = lock.scope();
        let refused = stranger.acquire(&key, lock.deadline_in(Duration::from_millis(200))).await;
        assert!(
            matches!(refused, Err(EnterError::Acquire(AcquireError::Taken { .. }))),
            "{url}: {refused:?}"
        );
    }
    assert_eq!(second.leave().await.unwrap(), Left::Nested { depth: 2 }, "{url}");
    assert_eq!(first.leave().await.unwrap(), Left::Nested { depth: 1 }, "{url}");
    third.renew().await.unwrap();
    let token = third.fence();
    let stranger = other.scope();
    let waiting = stranger.acquire(&key, other.deadline_in(DEADLINE));
    let leaving = async {
        let refused = other.acquire(&key, other.deadline_in(Duration::from_millis(200))).await;
        assert!(refused.is_err(), "{url}: after two of three sections have left");
        third.leave().await.unwrap()
    };
    let (next, left) = tokio::join!(waiting, leaving);
    assert_eq!(left, Left::Released(Released::Done), "{url}");
    assert!(next.unwrap().fence() > token, "{url}");
}

/// Lets a lease run out under its section.
async fn a_lost_lease_is_not_acquired_anew(url: &str) {
    let lock = client(url, Duration::from_millis(500)).await;
    let (scope, key) = (lock.scope(), key("2"));
    let outer = scope.acquire(&key, lock.deadline_in(DEADLINE)).await.unwrap();
    outer.lost().await;
    let refused = scope.acquire(&key, lock.deadline_in(DEADLINE)).await.unwrap_err();
    assert!(matches!(refused, EnterError::Lost { source: LostError::Expired, .. }), "{url}: {refused}");
    let _ = outer.leave().await.unwrap();
    let next = scope.acquire(&key, lock.deadline_in(DEADLINE)).await.unwrap();
    assert!(matches!(next.leave().await.unwrap(), Left::Released(Released::Done)), "{url}");
}

#[test]
fn sections_share_a_lease_until_the_last_leaves() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let three = Redis::start_many(&stage, 3).unwrap();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let zookeeper = ZooKeeper::start(&stage).unwrap();
    let majority: Vec<_> = three.iter().map(Redis::address).collect();
    let urls = [
        format!("redis://{}", redis.address()),
        format!("redis://{}", majority.join(",")),
        format!("etcd://{}", etcd.addresses()[0]),
        format!("zookeeper://{}", zookeeper.address()),
    ];
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for url in urls {
        tokio.block_on(a_stranger_waits_for_the_last_section(&url));
        tokio.block_on(a_lost_lease_is_not_acquired_anew(&url));
    }
}
