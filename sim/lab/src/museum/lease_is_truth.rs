//! R32: the lease of the queue alone says who runs a job. On Redis nobody asks whether the job is done: one
//! whose worker dies after its commit, and before it has removed the job from the queue, is run again. On
//! PostgreSQL a job is completed without the condition that the token is still its latest: a worker that was
//! paused for longer than its lease commits its effect a second time.
//!
//! Source: consumers of queues with a visibility timeout, such as Amazon SQS, that take a delivered message
//! for one that is not done.

use dlock::Instant;
use futures_util::future::BoxFuture;
use resource::fence::WriteSeq;
use resource::jobs::{JobGrant, JobRecord, JobRecordError, Part};

use crate::kit::{Faultless, jobs_with, jobs_without_tokens, rounds_with};
use crate::{System, Workplace};

/// A record of jobs that nobody asks.
struct Unasked<T>(T);

impl<T: JobRecord> JobRecord for Unasked<T> {
    type Error = T::Error;

    async fn claim(
        &mut self,
        grant: &JobGrant,
        by: Instant,
    ) -> Result<Option<Part>, JobRecordError<T::Error>> {
        self.0.claim(grant, by).await.map(|_| None)
    }

    async fn commit(
        &mut self,
        grant: &JobGrant,
        number: WriteSeq,
        part: &Part,
        by: Instant,
    ) -> Result<(), JobRecordError<T::Error>> {
        self.0.commit(grant, number, part, by).await
    }
}

/// Works all rounds of a worker that does not ask whether its job is done, or still its own.
pub(super) fn by_lease(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    match place.worker.runs_jobs() {
        true if place.options.system == System::POSTGRES => jobs_without_tokens(place),
        true => jobs_with(place, |queue| queue, Unasked),
        false => rounds_with::<Faultless>(place),
    }
}
