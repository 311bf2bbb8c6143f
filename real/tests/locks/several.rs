//! Several keys at once on live servers: clients that name the same keys in opposite orders never wait for
//! each other, and a key that is taken leaves the others free.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::{AcquireAllError, AcquireError, AnyBackend, Lock, LockKey, Options, Released, TokioRuntime};
use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper};

type Client = Lock<AnyBackend<TokioRuntime>>;

/// The rounds of each client.
const ROUNDS: usize = 20;

/// Far longer than all rounds take.
const DEADLINE: Duration = Duration::from_secs(60);

fn key(id: &str) -> LockKey {
    LockKey::new("accounts", id).unwrap()
}

async fn client(url: &str) -> Client {
    Lock::connect(url, Options::new(Duration::from_secs(3))).await.unwrap()
}

/// The tokens of a key in the order in which its holders wrote.
type Written = Arc<Mutex<Vec<(String, u64)>>>;

/// Holds both keys together, round after round, and writes under each of them.
async fn transfer(lock: Client, keys: [LockKey; 2], written: Written) {
    for _ in 0..ROUNDS {
        let held = lock.acquire_all(&keys, lock.deadline_in(DEADLINE)).await.unwrap();
        for (key, token) in held.fences() {
            written.lock().unwrap().push((key.name().to_owned(), token.as_u64()));
        }
        let released = held.release().await.unwrap();
        assert!(released.iter().all(|(_, how)| *how == Released::Done), "{released:?}");
    }
}

async fn opposite_orders_end(url: &str) {
    let written = Written::default();
    let (one, two) = (client(url).await, client(url).await);
    let there = tokio::spawn(transfer(one, [key("3"), key("7")], Arc::clone(&written)));
    let back = tokio::spawn(transfer(two, [key("7"), key("3")], Arc::clone(&written)));
    there.await.unwrap();
    back.await.unwrap();
    let written = written.lock().unwrap();
    for id in ["accounts:3", "accounts:7"] {
        let tokens: Vec<_> = written.iter().filter(|(key, _)| key == id).map(|(_, token)| token).collect();
        assert_eq!(tokens.len(), 2 * ROUNDS, "{url}");
        assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{url}: tokens of {id}: {tokens:?}");
    }
}

async fn a_taken_key_leaves_the_others_free(url: &str) {
    let (one, two) = (client(url).await, client(url).await);
    let taken = one.acquire(&key("9"), one.deadline_in(DEADLINE)).await.unwrap();
    let both = [key("9"), key("8")];
    let error = two.acquire_all(&both, two.deadline_in(Duration::from_millis(300))).await.unwrap_err();
    let is_taken = |error: &AcquireAllError| {
        matches!(error, AcquireAllError::NotAcquired { key: of, source: AcquireError::Taken { .. } }
            if *of == key("9"))
    };
    assert!(is_taken(&error), "{url}: {error}");
    assert!(two.cleaned_up(two.deadline_in(DEADLINE)).await, "{url}");
    let free = one.acquire(&key("8"), one.deadline_in(DEADLINE)).await.unwrap();
    free.release().await.unwrap();
    taken.release().await.unwrap();
}

#[test]
fn clients_of_several_keys_never_wait_for_each_other() {
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
        tokio.block_on(opposite_orders_end(&url));
        tokio.block_on(a_taken_key_leaves_the_others_free(&url));
    }
}
