//! Locks and resources that a user gives the laboratory in place of its own.

use std::sync::Arc;

use dlock::AnyBackend;
use resource::http::Config;

use super::options::Options;
use super::worker::Worker;
use crate::servers::resource::ResourceHost;
use crate::world::runtime::SimRuntime;

/// The worker that needs a lock, in one life of its process.
#[non_exhaustive]
pub struct Workplace<'a> {
    /// The process that locks.
    pub runtime: SimRuntime,
    /// The options of the laboratory.
    pub options: &'a Options,
    /// The worker.
    pub worker: &'a Worker,
    /// The addresses of the lock servers, in the worker's order.
    pub servers: Vec<String>,
    /// The options of the worker's lock: its TTL and drift margin.
    pub lock: dlock::Options,
}

/// Makes a lock; `None` keeps the system's own.
pub(super) type MakeLock = Arc<dyn Fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>> + Send + Sync>;

/// Makes the resource of one run.
pub(super) type MakeResource = Arc<dyn Fn(&Options, Config) -> ResourceHost + Send + Sync>;
