//! R40: the sessions that commit jobs set `synchronous_commit` to `off`. PostgreSQL then acknowledges a
//! commit before it is on the disk, and may lose it with the power: the job is in the queue again, and runs
//! once more.
//!
//! Source: the documentation of PostgreSQL, section 28.4, which says what may be lost; it is a usual advice
//! for more throughput.

use futures_util::future::BoxFuture;

use crate::Workplace;
use crate::kit::{Faultless, jobs_with_asynchronous_commits, rounds_with};

/// Works all rounds of a worker whose commits may be lost after they are acknowledged.
pub(super) fn asynchronous(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    match place.worker.runs_jobs() {
        true => jobs_with_asynchronous_commits(place),
        false => rounds_with::<Faultless>(place),
    }
}
