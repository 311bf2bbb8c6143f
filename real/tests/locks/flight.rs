//! Single-flight on live servers, with the results in the guarded resource: one computes, the others wait; a
//! failure is shared; who is replaced stores nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dlock::flight::{Flight, FlightError, FlightResult, Fresh, Results, SingleFlight, Stored};
use dlock::{AnyBackend, Cap, FencingToken, Lock, LockKey, Options, TokioRuntime};
use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper};
use resource::client::Client;
use resource::flight::{ResourceResults, ResultsError};
use resource::http::{App, Config, serve_connection};
use resource::store::MemoryStore;
use tokio::net::TcpListener;

type Flights = SingleFlight<AnyBackend<TokioRuntime>, ResourceResults<TokioRuntime>>;

/// Far longer than any step takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// Serves a resource on a free port; returns its address.
async fn serve_resource() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let app = App::new(Arc::new(MemoryStore::new()), Config::default());
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_connection(stream, &app));
        }
    });
    address
}

fn results(address: &str) -> ResourceResults<TokioRuntime> {
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    ResourceResults::new(runtime.clone(), Client::new(runtime, address))
}

async fn lock(url: &str) -> Lock<AnyBackend<TokioRuntime>> {
    Lock::connect(url, Options::new(Duration::from_millis(1500))).await.unwrap()
}

async fn flight(url: &str, address: &str) -> Flights {
    SingleFlight::new(lock(url).await, results(address), Cap(Duration::from_secs(60))).unwrap()
}

/// Computes for a while, fails if `fails`, and counts.
async fn compute(token: FencingToken, count: &AtomicU32, fails: bool) -> Result<Vec<u8>, String> {
    count.fetch_add(1, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(300)).await;
    if fails { Err("full".to_owned()) } else { Ok(format!("value {token}").into_bytes()) }
}

async fn run(
    flight: &Flights,
    fresh: Fresh,
    count: &AtomicU32,
    fails: bool,
) -> Result<Flight, FlightError<ResultsError>> {
    let key = LockKey::new("reports", "1").unwrap();
    flight.run(&key, fresh, flight.deadline_in(DEADLINE), |token| compute(token, count, fails)).await
}

async fn one_computes_for_all(url: &str) {
    let (address, count) = (serve_resource().await, AtomicU32::new(0));
    let (one, two, three) =
        (flight(url, &address).await, flight(url, &address).await, flight(url, &address).await);
    let all = tokio::try_join!(
        run(&one, Fresh::Any, &count, true),
        run(&two, Fresh::Any, &count, true),
        run(&three, Fresh::Any, &count, true),
    );
    let (failed, also, too) = all.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1, "{url}");
    assert!(failed.result == also.result && also.result == too.result, "{url}");
    assert_eq!(failed.result.value, Err("full".to_owned()), "{url}");
    let all = tokio::try_join!(
        run(&one, Fresh::Any, &count, false),
        run(&two, Fresh::Any, &count, false),
        run(&three, Fresh::Any, &count, false),
    );
    let (first, second, third) = all.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2, "{url}");
    assert!(first.result == second.result && second.result == third.result, "{url}");
    assert!(first.result.token > failed.result.token, "{url}");
    let known = Fresh::Above(first.result.token);
    let newer = run(&two, known, &count, false).await.unwrap();
    assert!(!newer.is_shared && newer.result.token > first.result.token, "{url}");
}

/// A process that computes is gone without a release, and its result comes late.
async fn a_late_result_is_refused(url: &str) {
    let (address, count) = (serve_resource().await, AtomicU32::new(0));
    let key = LockKey::new("reports", "1").unwrap();
    let gone = lock(url).await;
    let handle = gone.acquire(&key, gone.deadline_in(DEADLINE)).await.unwrap();
    let late = FlightResult { token: handle.fence(), value: Ok(b"late".to_vec()) };
    let owner = handle.owner().clone();
    handle.leave();
    let next = run(&flight(url, &address).await, Fresh::Any, &count, false).await.unwrap();
    assert!(!next.is_shared && next.result.token > late.token, "{url}");
    let (results, deadline) = (results(&address), gone.deadline_in(DEADLINE));
    assert_eq!(results.put(&key, &late, &owner, deadline).await.unwrap(), Stored::Stale, "{url}");
    assert_eq!(results.get(&key, deadline).await.unwrap(), Some(next.result), "{url}");
}

#[test]
fn one_computes_and_the_others_wait() {
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
        tokio.block_on(one_computes_for_all(&url));
        tokio.block_on(a_late_result_is_refused(&url));
    }
}
