//! Elections on live servers: leaders follow each other in growing terms, observers see them in order, and a
//! leader that stands still is replaced.

use std::time::Duration;

use dlock::election::{Election, Leadership, Observer};
use dlock::{AnyBackend, Cap, Lock, LockKey, LostError, Options, Released, TokioRuntime};
use real::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper};

type Backend = AnyBackend<TokioRuntime>;

const TTL: Duration = Duration::from_secs(3);

/// Far longer than all of it takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// The hand-overs of one test.
const TERMS: usize = 6;

/// A candidate with a client of its own.
struct Candidate {
    lock: Lock<Backend>,
    election: Election<Backend>,
}

impl Candidate {
    async fn new(url: &str, name: &str, key: &str) -> Self {
        let mut options = Options::new(TTL);
        options.instance = Some(name.to_owned());
        let lock = Lock::connect(url, options).await.unwrap();
        let key = LockKey::new("leader", key).unwrap();
        let election = Election::new(lock.clone(), key, Cap(DEADLINE)).unwrap();
        Self { lock, election }
    }

    async fn campaign(&self) -> Leadership<Backend> {
        self.election.campaign(self.lock.deadline_in(DEADLINE)).await.unwrap()
    }
}

/// Returns the next term that is seen, as a number, with the leader's name.
async fn next(observer: &mut Observer<Backend>) -> (String, u64) {
    let term = tokio::time::timeout(DEADLINE, observer.next()).await.unwrap().unwrap();
    (term.leader, term.term.as_u64())
}

async fn terms_grow_and_are_seen_in_order(url: &str) {
    let candidates = [Candidate::new(url, "a", "order").await, Candidate::new(url, "b", "order").await];
    let watching = Candidate::new(url, "c", "order").await;
    let mut observer = watching.election.observe();
    let mut last = 0;
    for number in 0..TERMS {
        let leadership = candidates[number % 2].campaign().await;
        let term = leadership.term().as_u64();
        assert!(term > last, "{url}: {term} after {last}");
        let seen = leadership.lead(next(&mut observer)).await.unwrap();
        assert_eq!(seen, (leadership.lease().owner().prefix().to_owned(), term), "{url}");
        assert_eq!(leadership.resign().await, Ok(Released::Done), "{url}");
        last = term;
    }
}

/// A leader outlives its TTL by its renewals; one that resigns, or is left to its TTL, is followed.
async fn a_leader_leads_until_it_ends(url: &str) {
    let (one, two) = (Candidate::new(url, "a", "ends").await, Candidate::new(url, "b", "ends").await);
    let first = one.campaign().await;
    first.lead(tokio::time::sleep(TTL + Duration::from_secs(1))).await.unwrap();
    let waiting = two.campaign();
    let term = first.term();
    let (second, resigned) = tokio::join!(waiting, first.resign());
    assert_eq!(resigned, Ok(Released::Done), "{url}");
    assert!(second.term() > term, "{url}");
    // A lock that closes ends its leases: the work of its leader is dropped.
    let close = async {
        two.lock.close(two.lock.deadline_in(DEADLINE)).await;
    };
    let (lost, ()) = tokio::join!(second.lead(std::future::pending::<()>()), close);
    assert_eq!(lost, Err(LostError::Released), "{url}");
    assert!(one.campaign().await.term() > second.term(), "{url}");
}

/// A leader whose term reaches its cap stops before the next one begins, though its process lives.
async fn a_leader_without_renewals_is_replaced(url: &str) {
    let (one, two) = (Candidate::new(url, "a", "cap").await, Candidate::new(url, "b", "cap").await);
    let capped = Election::new(one.lock.clone(), one.election.key().clone(), Cap(TTL / 2)).unwrap();
    let first = capped.campaign(one.lock.deadline_in(DEADLINE)).await.unwrap();
    let lead = async {
        let lost = first.lead(std::future::pending::<()>()).await;
        (lost, std::time::Instant::now())
    };
    let follow = async {
        let second = two.campaign().await;
        (second, std::time::Instant::now())
    };
    let ((lost, stopped), (second, began)) = tokio::join!(lead, follow);
    assert_eq!(lost, Err(LostError::Expired), "{url}");
    assert!(stopped <= began, "{url}: it stopped before the next one began");
    assert!(second.term() > first.term(), "{url}");
    assert!(first.lead(async {}).await.is_err(), "{url}");
}

#[test]
fn elections_keep_their_promises_on_live_servers() {
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
        tokio.block_on(terms_grow_and_are_seen_in_order(&url));
        tokio.block_on(a_leader_leads_until_it_ends(&url));
        tokio.block_on(a_leader_without_renewals_is_replaced(&url));
    }
}
