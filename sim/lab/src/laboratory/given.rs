//! The locks, workers and resources that a user gives the laboratory in place of its own.

use std::sync::Arc;

use dlock::{AnyBackend, Backend};
use futures_util::future::BoxFuture;
use resource::http::Config;
use sim::Process;
use sim::servers::resource::ResourceHost;
use sim::world::runtime::SimRuntime;

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
}

/// A correct lock of one system, as a worker of the laboratory uses it.
pub trait Correct: Backend<Runtime = SimRuntime> {
    /// Makes the lock of the worker at `place`. Returns `None` for servers that it can't use; no valid
    /// schedule has such servers.
    fn at(place: &Workplace<'_>) -> Option<Self>;
}

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
