//! What a user gives the laboratory in place of its own lock or resource.

use std::sync::Arc;

use dlock::AnyBackend;
use resource::http::Config;

use super::options::Options;
use super::worker::Worker;
use crate::servers::resource::ResourceHost;
use crate::world::runtime::SimRuntime;

/// Where a lock is needed: by one worker, in one life of its process.
#[non_exhaustive]
pub struct Workplace<'a> {
    /// The process that locks.
    pub runtime: SimRuntime,
    /// The options of the laboratory.
    pub options: &'a Options,
    /// The worker.
    pub worker: &'a Worker,
    /// The addresses of the lock servers, in the order in which the worker knows them.
    pub servers: Vec<String>,
    /// The options of the worker's lock: its TTL and drift margin.
    pub lock: dlock::Options,
}

/// Makes a lock; `None` leaves the system's own.
pub(super) type MakeLock = Arc<dyn Fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>> + Send + Sync>;

/// Makes the resource of one run.
pub(super) type MakeResource = Arc<dyn Fn(&Options, Config) -> ResourceHost + Send + Sync>;
