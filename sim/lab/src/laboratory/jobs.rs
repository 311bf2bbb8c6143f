//! The rounds of a worker of a job queue: it stores its jobs, then claims one job a round, runs it, commits
//! its parts with the token of the claim, and removes it from the queue. On Redis it commits them at the
//! resource, on PostgreSQL with the rows of their effects.

use std::ops::Range;
use std::time::Duration;

use dlock::queue::{Claimed, Jobs, QueuedJob};
use dlock::redis::{Queue, Redis};
use dlock::{Backoff, Instant, Runtime};
use futures_util::future::BoxFuture;
use resource::Fencing;
use resource::client::Client;
use resource::jobs::{
    JobRecord, JobWorker, Part, PostgresJobRecord, PostgresJobs, ResourceJobs, Task, Terms, enqueue, job_key,
};
use sim::entropy::Site;
use sim::faults::Call;
use sim::world::runtime::SimRuntime;
use sim::{Process, Span};

use super::given::{Correct, Workplace};
use super::options::Options;
use super::postgres::{Connecting, Effects, Unconditional};
use super::seat::{Yields, lock_key};
use super::system::System;
use super::worker::{JOBS, Worker as Spec, WorkerMode};

/// The most attempts of a job.
const ATTEMPTS_MAX: u64 = 3;

/// The most jobs of a worker: their numbers are below the first one of the next worker.
pub(super) const JOBS_MAX: u32 = 20;

/// The longest wait between two looks at the queue.
const POLL: Duration = Duration::from_millis(200);

/// Works all rounds of a worker with `mode = "jobs"`, with the correct queue and record of its system.
pub(crate) fn jobs(place: &Workplace<'_>) -> Option<BoxFuture<'static, ()>> {
    match place.options.system {
        System::POSTGRES => jobs_on_postgres(place, place.fencing, None),
        _ => jobs_with(place, |queue| queue, |record| record),
    }
}

/// Works all rounds of a worker with `mode = "jobs"` on PostgreSQL. Without fencing, commits have no
/// condition. Each session begins with the statement `setup`.
pub(crate) fn jobs_on_postgres(
    place: &Workplace<'_>,
    fencing: Fencing,
    setup: Option<&'static str>,
) -> Option<BoxFuture<'static, ()>> {
    let key = lock_key(place.options.key_of(place.worker)).ok()?;
    let (runtime, lease) = (place.runtime.clone(), place.options.ttl_of(place.worker).duration());
    let connect = || Connecting::of(place.process).with_setup(setup);
    let queue = PostgresJobs::new(key, runtime.clone(), connect());
    match fencing {
        Fencing::On => rounds(place, queue, PostgresJobRecord::new(runtime, connect(), lease, Effects)),
        Fencing::Off => rounds(place, queue, Unconditional::new(place.process, lease)),
    }
}

/// Works all rounds of a worker with `mode = "jobs"` on Redis, with the queue and the record that the
/// functions make of the correct ones.
pub(crate) fn jobs_with<Q, T>(
    place: &Workplace<'_>,
    queue: impl FnOnce(Queue<SimRuntime>) -> Q,
    record: impl FnOnce(ResourceJobs<SimRuntime>) -> T,
) -> Option<BoxFuture<'static, ()>>
where
    Q: Jobs<Runtime = SimRuntime> + 'static,
    T: JobRecord + 'static,
{
    let key = lock_key(place.options.key_of(place.worker)).ok()?;
    let queue = queue(Queue::new(Redis::at(place)?, key));
    let client = Client::new(place.runtime.clone(), place.resource);
    let record = record(ResourceJobs::new(client).with_retry(place.worker.retry_put.then(Default::default)));
    rounds(place, queue, record)
}

fn rounds<Q, T>(place: &Workplace<'_>, queue: Q, record: T) -> Option<BoxFuture<'static, ()>>
where
    Q: Jobs<Runtime = SimRuntime> + 'static,
    T: JobRecord + 'static,
{
    let worker = JobWorker::new(queue, record, terms(place), Yields(place.process.clone()));
    let number = place.options.workers.iter().position(|other| other.name == place.worker.name)?;
    let (process, spec) = (place.process.clone(), place.worker.clone());
    let fails = spec.fails.unwrap_or_default();
    let ids = ids(number, &spec);
    let mut working = Working { process, spec, worker, fails };
    Some(Box::pin(async move {
        working.store(ids).await;
        for _ in 0..working.spec.rounds {
            working.round().await;
            working.process.sleep(working.spec.think.duration()).await;
        }
    }))
}

/// Makes all workers those of a queue, whose jobs are stored by the first one.
pub(crate) fn work_on_jobs(options: &mut Options, site: &mut Site) {
    (options.permits, options.readers, options.tls) = (None, false, false);
    options.cron = Default::default();
    for (number, worker) in options.workers.iter_mut().enumerate() {
        let Spec { name, starts, rounds, think, deadline, work, ttl, renew, writes, retry_put, .. } =
            worker.clone();
        let jobs = (number == 0).then(|| 1 + site.below(3) as u32);
        let fails = Some(1).filter(|_| site.chance(0.1));
        let (mode, deadline) = (WorkerMode::new(JOBS), deadline.min(Span::from_secs(5)));
        // The last round finds that no job is left.
        let own = Spec { name, mode, starts, rounds: rounds + 1, think, deadline, work, ..Spec::default() };
        *worker = Spec { ttl, renew, writes, retry_put, jobs, fails, ..own };
    }
}

/// Returns the numbers of the jobs that the worker with this index stores.
fn ids(number: usize, spec: &Spec) -> Range<u64> {
    let first = number as u64 * u64::from(JOBS_MAX) + 1;
    first..first + u64::from(spec.jobs.unwrap_or_default())
}

/// Returns the names of the resources of all jobs.
pub(super) fn resources(options: &Options) -> impl Iterator<Item = String> {
    options.workers.iter().enumerate().flat_map(|(number, spec)| {
        let queue = lock_key(options.key_of(spec)).ok();
        let job = move |id| Some(job_key(queue.as_ref()?, id).ok()?.as_str().to_owned());
        ids(number, spec).filter_map(job)
    })
}

fn terms(place: &Workplace<'_>) -> Terms {
    Terms {
        lease: place.options.ttl_of(place.worker).duration(),
        heartbeat: place.worker.renew,
        attempts_max: ATTEMPTS_MAX,
        backoff: Backoff { base: Duration::from_millis(100), max: Duration::from_secs(1) },
        answer_timeout: place.worker.deadline.duration(),
        instance: Some(place.worker.name.clone()),
    }
}

/// A worker of a queue, with its process and its options.
struct Working<Q, T> {
    process: Process,
    spec: Spec,
    worker: JobWorker<Q, T, Yields>,
    /// The number of its next runs that fail.
    fails: u32,
}

impl<Q: Jobs<Runtime = SimRuntime>, T: JobRecord> Working<Q, T> {
    /// Stores the worker's jobs. A job that is not acknowledged before the deadline is given up.
    async fn store(&self, ids: Range<u64>) {
        for id in ids {
            let end = self.deadline();
            let payload = format!("job {id} of {}", self.spec.name);
            while enqueue(self.worker.queue(), id, payload.as_bytes(), Duration::ZERO, end).await.is_err()
                && self.now() < end
            {
                self.process.sleep(POLL).await;
            }
        }
    }

    /// Runs one job. Waits for it until the deadline, or until the queue is empty.
    async fn round(&mut self) {
        let end = self.deadline();
        while self.now() < end {
            let wait = match self.process.cancellable(Call::Acquire, self.worker.claim()).await {
                Some(Ok(Claimed::Job(job))) => return self.run(&job).await,
                Some(Ok(Claimed::Empty)) | None => return,
                Some(Ok(Claimed::Wait { left })) => left.min(POLL),
                Some(Err(_)) => POLL,
            };
            self.process.sleep(wait + Duration::from_millis(1)).await;
        }
    }

    async fn run(&mut self, job: &QueuedJob) {
        let Self { process, spec, worker, fails } = self;
        let (work, parts) = (spec.work.duration(), u64::from(spec.writes));
        let part = |task: Task| {
            let (process, is_failing) = (process.clone(), *fails > 0);
            *fails = fails.saturating_sub(1);
            async move {
                if !work.is_zero() {
                    process.sleep(work).await;
                }
                if is_failing {
                    Err("it fails as the schedule says".to_owned())
                } else {
                    Ok(next(&task, parts))
                }
            }
        };
        // The history shows a run that fails; the next round goes on.
        let _ = worker.run(job, part).await;
    }

    fn deadline(&self) -> Instant {
        self.now() + self.spec.deadline.duration()
    }

    fn now(&self) -> Instant {
        self.process.runtime().now()
    }
}

/// Returns the part after the progress, which is the number of parts that are done, of this many parts.
fn next(task: &Task, parts: u64) -> Part {
    let done =
        task.progress.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse::<u64>().ok());
    let number = done.unwrap_or_default() + 1;
    let text = number.to_string().into_bytes();
    if number < parts { Part::Progress(text) } else { Part::Done(text) }
}
