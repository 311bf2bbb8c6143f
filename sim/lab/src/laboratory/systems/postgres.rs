//! A job queue of PostgreSQL. It has no lock: its workers run jobs, whose claims and ends are rows of one
//! table.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use history::Name;
use sim::entropy::Site;
use sim::servers::host::Host;
use sim::{FieldPath, Invalid};

use super::super::given::StoredLock;
use super::super::jobs::work_on_jobs;
use super::super::options::Options;
use super::super::point::ProcessKind;
use super::super::postgres::POSTGRES;
use super::super::rounds::apart;
use super::super::seat::Seat;
use super::super::servers::Durability;
use super::super::system::System;
use super::super::worker::JOBS;
use super::LockSystem;
use super::redis::TTLS_MILLIS;

impl System {
    /// A job queue of PostgreSQL, for workers with `mode = "jobs"` alone.
    pub const POSTGRES: Self = Self(POSTGRES);
}

/// The system `postgres`. The world has its server, as for a cron whose record is there.
pub(super) struct Queue;

impl LockSystem for Queue {
    fn name(&self) -> System {
        System::POSTGRES
    }

    fn title(&self) -> &'static str {
        "PostgreSQL"
    }

    fn has_lock(&self) -> bool {
        false
    }

    fn servers(&self, _: &Options) -> Vec<(String, ProcessKind)> {
        Vec::new()
    }

    fn hosts(&self, _: &Options, _: &[(StoredLock, &str)]) -> Vec<(String, Arc<dyn Host>)> {
        Vec::new()
    }

    fn addresses(&self, _: &Seat<'_>) -> Vec<String> {
        Vec::new()
    }

    fn work_with_own<'a>(&self, _: Seat<'a>) -> BoxFuture<'a, ()> {
        // No worker of a valid schedule locks.
        apart(std::future::ready(()))
    }

    fn check(&self, options: &Options) -> Result<(), Invalid> {
        let Some(at) = options.workers.iter().position(|worker| !worker.runs_jobs()) else { return Ok(()) };
        let (name, mode) = (&options.workers[at].name, options.workers[at].mode.name());
        let problem = format!(
            "`mode = \"{mode}\"` of `{name}`: `{POSTGRES}` has a job queue and no lock: write \
             mode = \"{JOBS}\""
        );
        Err(FieldPath::top("worker").index(at).key("mode").says(problem))
    }

    fn durability(&self, _: &Options) -> Durability {
        Durability::Acknowledged
    }

    fn has_links(&self) -> bool {
        false
    }

    fn speakers(&self, _: &Options) -> Vec<String> {
        vec![POSTGRES.to_owned()]
    }

    fn voters(&self, _: &Options) -> Vec<Name> {
        Vec::new()
    }

    fn key_grace(&self, _: &Options) -> Duration {
        Duration::ZERO
    }

    fn ttls_millis(&self) -> &'static [u64] {
        TTLS_MILLIS
    }

    fn suit(&self, options: &mut Options, site: &mut Site) {
        work_on_jobs(options, site);
    }
}
