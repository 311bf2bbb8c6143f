//! The work of an operator on one lock: inspect it, clear it, raise its counter.
//!
//! [`Servers`] reads the state of a lock from its servers into an [`Inspection`]. [`findings()`] judges it:
//! pure. [`Watch`] finds out if the holder still renews, [`Servers::clear`] deletes its lease,
//! [`Servers::raise`] sets a lost counter above what the resource has seen. [`AuditLog`] keeps a record of
//! both.
//!
//! Only prefixes of owner tokens are shown or recorded: a whole token suffices to release a lock.

mod audit;
mod etcd;
mod findings;
mod names;
mod raise;
mod redis;
mod render;
mod seen;
mod watch;
mod wire;
mod zookeeper;

use std::fmt;
use std::time::Duration;

use dlock::tls::TlsError;
use dlock::{Instant, Runtime, TokioRuntime, owner_prefix, timeout_at};
use serde::{Serialize, Serializer};

use crate::place::Place;
use crate::systems::System;

pub use audit::{AuditError, AuditLog, Entry, Stage};
pub use findings::{Finding, findings};
pub use names::{NameError, Names};
pub use raise::{RaiseError, Raised, check_raise, check_writes};
pub use seen::{Seen, SeenError};
pub use watch::{Watch, Watched, watch_time};
use wire::Wire;

/// The timeout of one reading of a server, and of one change.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The time after [`TIMEOUT`] in which a client says why it has failed.
const GRACE: Duration = Duration::from_millis(500);

/// A lock and its servers.
#[derive(Clone)]
pub struct Target {
    /// The names of the lock.
    pub names: Names,
    /// The lock servers.
    pub place: Place,
}

/// The state of a lock, as its servers and its resource report it.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// The name of the key.
    pub key: String,
    /// The lock system.
    pub system: System,
    /// The state on the servers.
    #[serde(flatten)]
    pub state: State,
    /// The resource, if it was read.
    pub resource: Option<Seen>,
}

/// The state of a lock on its servers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// On each Redis by itself.
    Servers(Vec<RedisServer>),
    /// In the queue of a cluster.
    Queue(Queue),
}

/// The answer of one Redis.
#[derive(Clone, Debug, Serialize)]
pub struct RedisServer {
    /// Its address.
    pub server: String,
    /// The lock there.
    #[serde(flatten)]
    pub answer: Answer,
}

/// The lock on one Redis, or the reason why it could not be read.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The lock.
    Read(RedisState),
    /// The reason.
    Failed(String),
}

/// The lock on one Redis, all read at one moment but for the listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RedisState {
    /// The lease, if there is one.
    pub lease: Option<RedisLease>,
    /// The fencing counter; `None` if there is none.
    pub counter: Option<u64>,
    /// The time until the counter expires, in milliseconds; `None` if it does not, as it must be.
    pub counter_left_ms: Option<u64>,
    /// The number of clients that wait for a release; `None` if the user may not ask.
    pub listeners: Option<u64>,
}

/// A lease on one Redis; with Redlock, the vote of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RedisLease {
    /// Its owner.
    pub owner: Owner,
    /// The time until it ends, in milliseconds; `None` if it never does.
    pub left_ms: Option<u64>,
}

/// The queue of a lock in a cluster.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Queue {
    /// The last revision (etcd) or transaction (ZooKeeper) of the cluster: later tokens are above it. `None`
    /// if no server reports it.
    pub revision: Option<u64>,
    /// The claims, in their order. The first holds the lock.
    pub claims: Vec<Claim>,
    /// Names in the queue that are no claims.
    pub strangers: Vec<String>,
}

/// A claim in a queue: the holder's or a waiter's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// The key in etcd, of which only a prefix is shown, or the path in ZooKeeper.
    pub name: String,
    /// Its owner.
    pub owner: Owner,
    /// Its fencing token: the create revision, or the transaction that created it.
    pub token: u64,
    /// The session with which it ends; `None` if it never ends by itself.
    pub session: Option<Session>,
    /// True if the numbers of ZooKeeper's queue are used up: no such claim is granted.
    pub is_used_up: bool,
    /// The number that the deletion compares: the mod revision in etcd, the version of the data in ZooKeeper.
    #[serde(skip)]
    version: i64,
    #[serde(skip)]
    path: Path,
}

/// The whole key or path of a claim. In etcd it ends with the digits of the owner token: never shown.
#[derive(Clone, Default, PartialEq, Eq)]
struct Path(String);

/// The session of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Session {
    /// Its number, in hexadecimal.
    pub id: String,
    /// Its whole time to live, in milliseconds, if it is known.
    pub ttl_ms: Option<u64>,
    /// The time that is left of it, in milliseconds, if it is known. It rises with each renewal.
    pub left_ms: Option<u64>,
    /// The address of its client, if it is known.
    pub client: Option<String>,
    /// True if etcd does not know it, or no server of ZooKeeper has a connection of it; `None` if the servers
    /// of ZooKeeper do not say.
    pub is_gone: Option<bool>,
    /// The number of messages that a server has received on its connection, if it is known.
    #[serde(skip)]
    received: Option<u64>,
}

/// An owner token, of which only the prefix is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Owner(String);

/// The holder of a lock, or a waiter, to be cleared.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The owner.
    pub owner: Owner,
    /// The servers that store its lease: those of Redis, or none for a cluster.
    pub servers: Vec<String>,
    /// Its claim in the queue of a cluster.
    pub claim: Option<Claim>,
    /// The longest time that is left of it, in milliseconds, if it ends and that is known.
    pub left_ms: Option<u64>,
}

/// The deletion of a lease on one server.
#[derive(Clone, Debug, Serialize)]
pub struct Deletion {
    /// The server, or the name of the claim.
    pub at: String,
    /// The outcome.
    pub outcome: Deleted,
}

/// The outcome of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deleted {
    /// It is deleted.
    Done,
    /// It had ended, or changed: nothing was deleted.
    Changed,
    /// The server failed: it may be deleted or not.
    Failed(String),
}

/// The servers can't be read.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// The number of servers does not fit the system.
    #[error(
        "redis needs one server, but --servers lists {0}: give one, or --system redlock for several that \
         vote"
    )]
    OneServer(usize),
    /// No server is given.
    #[error("no server is given: list them in --servers")]
    NoServer,
    /// The certificates can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No server answered.
    #[error("{server} can't be read: {reason}")]
    Unread {
        /// The server, or the first of several.
        server: String,
        /// The error.
        reason: String,
    },
}

/// Connections to the servers of a lock.
pub struct Servers {
    runtime: TokioRuntime,
    target: Target,
    link: Link,
}

enum Link {
    Redis(redis::Nodes),
    Etcd(Box<etcd::Cluster>),
    ZooKeeper(zookeeper::Ensemble),
}

impl Owner {
    /// Returns the part that may be shown: see [`dlock::Owner::prefix`].
    pub fn prefix(&self) -> &str {
        owner_prefix(&self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.prefix())
    }
}

impl Servers {
    /// Connects to the servers of `target`.
    ///
    /// # Errors
    ///
    /// [`OperateError`] if their number does not fit the system, the certificates can't be used, or none can
    /// be reached.
    pub async fn connect(runtime: TokioRuntime, target: Target) -> Result<Self, OperateError> {
        let wire = Wire::new(runtime.clone(), target.place.connector()?);
        let link = match (target.place.system, target.place.addresses.len()) {
            (_, 0) => return Err(OperateError::NoServer),
            (System::Redis, several @ 2..) => return Err(OperateError::OneServer(several)),
            (System::Redis | System::Redlock, _) => Link::Redis(redis::Nodes::new(&wire, &target)),
            (System::Etcd, _) => {
                let opened = within(&runtime, &target, |_| etcd::Cluster::connect(wire, &target)).await?;
                Link::Etcd(Box::new(opened))
            }
            (System::Zookeeper, _) => Link::ZooKeeper(zookeeper::Ensemble::new(wire, &target)),
        };
        Ok(Self { runtime, target, link })
    }

    /// Returns the clock and the network of the connections.
    pub fn runtime(&self) -> &TokioRuntime {
        &self.runtime
    }

    /// Reads the lock from its servers; the resource is left out.
    ///
    /// # Errors
    ///
    /// [`OperateError::Unread`] if no server answers.
    pub async fn read(&mut self) -> Result<Inspection, OperateError> {
        let Self { runtime, target, link } = self;
        let state = match link {
            Link::Redis(nodes) => State::Servers(nodes.read(target).await?),
            Link::Etcd(cluster) => State::Queue(within(runtime, target, |_| cluster.read(target)).await?),
            Link::ZooKeeper(ensemble) => {
                State::Queue(within(runtime, target, |deadline| ensemble.read(target, deadline)).await?)
            }
        };
        Ok(Inspection {
            key: target.names.name().to_owned(),
            system: target.place.system,
            state,
            resource: None,
        })
    }

    /// Deletes the lease of `holder` wherever it is stored, if it is still the same. Counters stay as they
    /// are.
    pub async fn clear(&mut self, holder: &Holder) -> Vec<Deletion> {
        let Self { runtime, target, link } = self;
        let claim = holder.claim.as_ref();
        let (at, deleting) = match (link, claim) {
            (Link::Redis(nodes), _) => return nodes.clear(target, holder).await,
            (Link::Etcd(cluster), Some(claim)) => {
                (claim.name.clone(), within(runtime, target, |_| cluster.delete(target, claim)).await)
            }
            (Link::ZooKeeper(ensemble), Some(claim)) => (
                claim.name.clone(),
                within(runtime, target, |deadline| ensemble.delete(claim, deadline)).await,
            ),
            (_, None) => return Vec::new(),
        };
        let outcome = deleting.unwrap_or_else(|error| Deleted::Failed(error.to_string()));
        vec![Deletion { at, outcome }]
    }

    /// Ends the connections.
    pub async fn close(self) {
        if let Link::ZooKeeper(ensemble) = self.link {
            ensemble.close().await;
        }
    }
}

impl Inspection {
    /// Returns the owners that hold the lock, or believe so: on Redis the owner of each lease, on a cluster
    /// the first of the queue.
    pub fn holders(&self) -> Vec<Holder> {
        match &self.state {
            State::Servers(servers) => redis::holders(servers),
            State::Queue(queue) => queue.claims.first().map(Holder::of_claim).into_iter().collect(),
        }
    }

    /// Returns the holders, and the claims in the queue, whose owner tokens begin with `prefix`.
    pub fn claimants(&self, prefix: &str) -> Vec<Holder> {
        let mut all = self.holders();
        if let State::Queue(queue) = &self.state {
            all.extend(queue.claims.iter().skip(1).map(Holder::of_claim));
        }
        all.retain(|holder| !prefix.is_empty() && holder.owner.0.starts_with(prefix));
        all
    }
}

impl Holder {
    fn of_claim(claim: &Claim) -> Self {
        let left_ms = claim.session.as_ref().and_then(|session| session.left_ms);
        Self { owner: claim.owner.clone(), servers: Vec::new(), claim: Some(claim.clone()), left_ms }
    }
}

/// Waits for a step of a cluster's client, which is given its deadline: [`TIMEOUT`] from now.
///
/// A client that ends at its deadline says why nobody answered. So it gets [`GRACE`] to say it.
async fn within<T, S: Future<Output = Result<T, String>>>(
    runtime: &TokioRuntime,
    target: &Target,
    step: impl FnOnce(Instant) -> S,
) -> Result<T, OperateError> {
    let unread = |reason| OperateError::Unread { server: target.place.addresses.join(","), reason };
    let deadline = runtime.now() + TIMEOUT;
    match timeout_at(runtime, deadline + GRACE, step(deadline)).await {
        Ok(done) => done.map_err(unread),
        Err(_) => Err(unread(format!("no answer within {} s", TIMEOUT.as_secs()))),
    }
}
