//! R20: an observer of an election asks several servers, and believes the answer that comes last. One of them
//! lags, so that it names the leader before once more: a replica of Redis, a node of Redlock on which an
//! older vote is left, a member of etcd that answers a serializable read, a follower of ZooKeeper without a
//! sync.
//!
//! Source: clients that read who leads from any server, such as by Consul's mode `stale` or etcd's
//! serializable reads, and keep no number of the term that they have seen.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use dlock::election::Election;
use dlock::{AnyBackend, LockKey, Runtime, owner_prefix};
use futures_util::future::{BoxFuture, join_all};
use sim::Span;
use sim::world::runtime::SimRuntime;

use crate::kit::{Faultless, Hands, WorkerMistake, etcd, rounds_with, zookeeper};
use crate::wire::Wire;
use crate::{Options, System, Worker, WorkerMode, Workplace};

/// The servers that it asks where a replica stands beside one Redis.
const SERVERS: [&str; 2] = ["redis-1:6379", "replica-1:6379"];

/// The time between two questions to a server.
const EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// The name of a drawn observer.
const OBSERVER: &str = "observer";

/// Works all rounds of a worker that believes the last answer.
pub(super) fn stale(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    match place.options.system {
        System::ETCD => rounds_with::<StaleObserver<Members>>(place),
        System::ZOOKEEPER => rounds_with::<StaleObserver<Followers>>(place),
        System::REDLOCK => rounds_with::<StaleObserver<Nodes>>(place),
        _ => rounds_with::<StaleObserver<Replica>>(place),
    }
}

/// Works all rounds of a worker that believes the highest term.
pub(super) fn latest(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    rounds_with::<Faultless>(place)
}

/// Believes the last answer.
struct StaleObserver<S>(std::marker::PhantomData<fn() -> S>);

/// The leader that a server names, and the term.
type Leader = (String, u64);

/// The servers that an observer asks.
trait Servers: Send + Sync + 'static {
    /// A server.
    type Server: Send + Sync;

    /// Returns the servers.
    fn of(hands: &Hands) -> Vec<Self::Server>;

    /// Asks a server who leads. Returns `Err` without an answer.
    fn ask(
        hands: &Hands,
        server: &Self::Server,
        key: &LockKey,
    ) -> impl Future<Output = Result<Option<Leader>, ()>> + Send;
}

/// A Redis and its replica.
struct Replica;

/// The nodes of a Redlock.
struct Nodes;

/// The members of etcd.
struct Members;

/// The servers of ZooKeeper.
struct Followers;

impl Servers for Replica {
    type Server = Wire<SimRuntime>;

    fn of(hands: &Hands) -> Vec<Wire<SimRuntime>> {
        let runtime = hands.process.runtime();
        SERVERS.into_iter().map(|server| Wire::new(runtime.clone(), server)).collect()
    }

    async fn ask(_: &Hands, server: &Wire<SimRuntime>, key: &LockKey) -> Result<Option<Leader>, ()> {
        ask_redis(server, key).await
    }
}

impl Servers for Nodes {
    type Server = Wire<SimRuntime>;

    fn of(hands: &Hands) -> Vec<Wire<SimRuntime>> {
        let runtime = hands.process.runtime();
        hands.servers.iter().map(|server| Wire::new(runtime.clone(), server)).collect()
    }

    async fn ask(_: &Hands, server: &Wire<SimRuntime>, key: &LockKey) -> Result<Option<Leader>, ()> {
        ask_redis(server, key).await
    }
}

impl Servers for Members {
    type Server = etcd::Plain;

    fn of(hands: &Hands) -> Vec<etcd::Plain> {
        hands.etcd.each()
    }

    async fn ask(_: &Hands, server: &etcd::Plain, key: &LockKey) -> Result<Option<Leader>, ()> {
        server.first_here(key).await.map_err(drop)
    }
}

impl Servers for Followers {
    type Server = zookeeper::Plain;

    fn of(hands: &Hands) -> Vec<zookeeper::Plain> {
        hands.zookeeper.each()
    }

    async fn ask(hands: &Hands, server: &zookeeper::Plain, key: &LockKey) -> Result<Option<Leader>, ()> {
        let deadline = hands.process.runtime().now() + EVERY * 2;
        server.first_here(key, deadline).await.map_err(drop)
    }
}

/// Reads the owner and the counter of a lock from one Redis.
async fn ask_redis(server: &Wire<SimRuntime>, key: &LockKey) -> Result<Option<Leader>, ()> {
    let mut command = redis::cmd("MGET");
    command.arg(key.owner_key()).arg(key.fence_key());
    let (owner, term) = server.ask::<(Option<String>, Option<u64>)>(&command).await.map_err(drop)?;
    Ok(owner.zip(term).map(|(owner, term)| (owner_prefix(&owner).to_owned(), term)))
}

impl<S: Servers> WorkerMistake for StaleObserver<S> {
    async fn observe(hands: &Hands, election: Election<AnyBackend<SimRuntime>>) {
        let (last, servers) = (Mutex::new(0), S::of(hands));
        let all = join_all(servers.iter().map(|server| ask_for_ever::<S>(hands, &election, server, &last)));
        let runtime = hands.process.runtime();
        let _ = dlock::timeout_at(&runtime, hands.observing_until(), std::pin::pin!(all)).await;
    }
}

/// Asks a server who leads, and shows each answer that differs from the last one of any server.
async fn ask_for_ever<S: Servers>(
    hands: &Hands,
    election: &Election<AnyBackend<SimRuntime>>,
    server: &S::Server,
    last: &Mutex<u64>,
) {
    let (runtime, key) = (hands.process.runtime(), election.key());
    loop {
        if let Ok(Some((leader, term))) = S::ask(hands, server, key).await {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::replace(&mut *last, term) != term {
                hands.saw(key, &leader, term);
            }
        }
        runtime.sleep_until(runtime.now() + EVERY).await;
    }
}

/// Makes all drawn workers that lock candidates, and adds an observer, and on Redis a replica.
pub(super) fn observe(options: &mut Options) {
    super::renew_deadline::campaign(options);
    options.redis.replica |= options.system == System::REDIS;
    if options.workers.iter().any(Worker::observes) {
        return;
    }
    let (mode, deadline) = (WorkerMode::new("observe"), Span::from_secs(2));
    options.workers.push(Worker { mode, rounds: 3, deadline, ..Worker::new(OBSERVER) });
}
