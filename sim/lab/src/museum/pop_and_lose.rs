//! R31: a worker takes a job off the queue before it runs it. If it dies, nobody has the job.
//!
//! Source: workers on `LPOP` or `BRPOP` of Redis; Celery without `acks_late`, RabbitMQ with automatic
//! acknowledgements.

use std::time::Duration;

use dlock::queue::{Claimed, Jobs, QueuedJob};
use dlock::{BackendError, FencingToken, Instant, LockKey};
use futures_util::future::BoxFuture;
use sim::Span;

use crate::kit::{Faultless, jobs, jobs_with, rounds_with};
use crate::{Options, System, Worker, WorkerMode, Workplace};

/// A queue that forgets a job when it is claimed.
struct Popped<Q>(Q);

impl<Q: Jobs> Popped<Q> {
    /// Puts a job back that has failed.
    async fn push(&self, job: &QueuedJob, pause: Duration, by: Instant) -> Result<bool, BackendError> {
        self.0.enqueue(job.id, &job.payload, pause, by).await
    }
}

impl<Q: Jobs> Jobs for Popped<Q> {
    type Runtime = Q::Runtime;

    fn runtime(&self) -> &Q::Runtime {
        self.0.runtime()
    }

    fn key(&self) -> &LockKey {
        self.0.key()
    }

    async fn enqueue(
        &self,
        id: u64,
        payload: &[u8],
        delay: Duration,
        by: Instant,
    ) -> Result<bool, BackendError> {
        self.0.enqueue(id, payload, delay, by).await
    }

    async fn claim(
        &self,
        lease: Duration,
        instance: Option<&str>,
        by: Instant,
    ) -> Result<Claimed, BackendError> {
        let claimed = self.0.claim(lease, instance, by).await?;
        if let Claimed::Job(job) = &claimed {
            self.0.finish(job, by).await?;
        }
        Ok(claimed)
    }

    async fn extend(&self, _: &QueuedJob, _: Duration, _: Instant) -> Result<bool, BackendError> {
        Ok(true)
    }

    async fn retry(
        &self,
        job: &QueuedJob,
        pause: Duration,
        _: &str,
        by: Instant,
    ) -> Result<bool, BackendError> {
        self.push(job, pause, by).await
    }

    async fn catch_up(&self, job: &QueuedJob, _: FencingToken, by: Instant) -> Result<bool, BackendError> {
        self.push(job, Duration::ZERO, by).await
    }

    async fn finish(&self, _: &QueuedJob, _: Instant) -> Result<bool, BackendError> {
        Ok(true)
    }

    async fn bury(&self, job: &QueuedJob, error: &str, by: Instant) -> Result<bool, BackendError> {
        self.0.bury(job, error, by).await
    }
}

/// Works all rounds of a worker, whose jobs are gone when they are claimed.
pub(super) fn pop(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    match place.worker.runs_jobs() {
        true => jobs_with(place, Popped, |record| record),
        false => rounds_with::<Faultless>(place),
    }
}

/// Works all rounds of a worker, whose jobs stay in the queue until they are done.
pub(super) fn keep(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    if place.worker.runs_jobs() { jobs(place) } else { rounds_with::<Faultless>(place) }
}

/// Makes all workers those of a queue, unless some are. The first one stores two jobs.
pub(super) fn work_on_jobs(options: &mut Options) {
    if ![System::REDIS, System::POSTGRES].contains(&options.system)
        || options.workers.iter().any(Worker::runs_jobs)
    {
        return;
    }
    (options.permits, options.readers, options.cron) = (None, false, Default::default());
    for (number, worker) in options.workers.iter_mut().enumerate() {
        let Worker { name, starts, rounds, think, work, ttl, renew, writes, retry_put, .. } = worker.clone();
        let (mode, jobs) = (WorkerMode::new("jobs"), (number == 0).then_some(2));
        // The last round finds that no job is left.
        let (rounds, deadline) = (rounds + 1, Span::from_secs(5));
        let own = Worker { name, mode, starts, rounds, think, deadline, work, ttl, ..Worker::default() };
        *worker = Worker { renew, writes, retry_put, jobs, ..own };
    }
}
