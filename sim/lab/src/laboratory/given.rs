//! The locks, workers and resources that a user gives the laboratory in place of its own.

use std::sync::Arc;

use dlock::{AnyBackend, Backend};
use futures_util::future::BoxFuture;
use resource::Fencing;
use resource::http::Config;
use sim::servers::resource::ResourceHost;
use sim::world::runtime::SimRuntime;
use sim::{Process, Sim};

use super::options::Options;
use super::worker::Worker;

/// The worker that needs a lock, in one life of its process.
#[non_exhaustive]
pub struct Workplace<'a> {
    /// The process that locks.
    pub process: &'a Process,
    /// The runtime of that process.
    pub runtime: SimRuntime,
    /// The options of the laboratory.
    pub options: &'a Options,
    /// The worker.
    pub worker: &'a Worker,
    /// The addresses of the lock servers, in the worker's order.
    pub servers: Vec<String>,
    /// The options of the worker's lock: its TTL and drift margin.
    pub lock: dlock::Options,
    /// The address of the protected resource.
    pub resource: &'static str,
    /// Says if statements in PostgreSQL check tokens. The resource has a setting of its own.
    pub fencing: Fencing,
}

/// A correct lock of one system, as a worker of the laboratory uses it.
pub trait Correct: Backend<Runtime = SimRuntime> {
    /// Makes the lock of the worker at `place`. Returns `None` for servers that it can't use; no valid
    /// schedule has such servers.
    fn at(place: &Workplace<'_>) -> Option<Self>;
}

/// The form in which the lock servers store a lock. The history has the locks that the world knows by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredLock {
    /// A key, in ZooKeeper a node: it exists while the lock is held, and its value is the owner.
    Key(String),
    /// The keys with this prefix, in ZooKeeper the nodes below this parent: the oldest one holds the lock. On
    /// etcd and ZooKeeper only.
    Queue(String),
    /// A key, as of [`StoredLock::Key`], and apart from it the places of those that wait. On etcd and
    /// ZooKeeper only.
    Apart {
        /// The key.
        key: String,
        /// The prefix of the places, in ZooKeeper their parent.
        waiters: String,
    },
}

/// Returns the form in which a key of a schedule is stored.
pub(super) type Layout = Arc<dyn Fn(&str) -> StoredLock + Send + Sync>;

/// Adds a check to a world.
pub(super) type AddCheck = Arc<dyn Fn(&mut Sim) + Send + Sync>;

/// Makes a lock; `None` keeps the system's own.
pub(super) type MakeLock = Arc<dyn Fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>> + Send + Sync>;

/// Makes all rounds of a worker; `None` keeps the laboratory's own.
pub(super) type MakeWorker = Arc<dyn Fn(&Workplace<'_>) -> Option<BoxFuture<'static, ()>> + Send + Sync>;

/// The lock and the workers in place of the laboratory's own.
#[derive(Clone, Default)]
pub(super) struct Given {
    pub(super) lock: Option<MakeLock>,
    pub(super) worker: Option<MakeWorker>,
}

/// Makes the resource of one run.
pub(super) type MakeResource = Arc<dyn Fn(&Options, Config) -> ResourceHost + Send + Sync>;
