//! A worker of a job queue, as a correct one works, except for its queue or its record of jobs.

use dlock::queue::Jobs;
use dlock::redis::Queue;
use futures_util::future::BoxFuture;
use resource::Fencing;
use resource::jobs::{JobRecord, ResourceJobs};
use sim::world::runtime::SimRuntime;

use crate::{Workplace, laboratory};

/// Works all rounds of a worker with `mode = "jobs"`, with the correct queue and record.
pub fn jobs(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    laboratory::jobs(place)
}

/// Works all rounds of a worker with `mode = "jobs"` on PostgreSQL, whose commits ask for no token.
pub fn jobs_without_tokens(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    laboratory::jobs_on_postgres(place, Fencing::Off, None)
}

/// Works all rounds of a worker with `mode = "jobs"` on PostgreSQL, which acknowledges its commits before
/// they are on the disk.
pub fn jobs_with_asynchronous_commits(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    laboratory::jobs_on_postgres(place, place.fencing, Some("SET synchronous_commit TO off"))
}

/// Works all rounds of a worker with `mode = "jobs"` on Redis, with the queue and the record that the
/// functions make of the correct ones.
pub fn jobs_with<Q, T>(
    place: &Workplace<'_>,
    queue: impl FnOnce(Queue<SimRuntime>) -> Q,
    record: impl FnOnce(ResourceJobs<SimRuntime>) -> T,
) -> Option<BoxFuture<'static, ()>>
where
    Q: Jobs<Runtime = SimRuntime> + 'static,
    T: JobRecord + 'static,
{
    laboratory::jobs_with(place, queue, record)
}
