//! Our job queues on Redis and PostgreSQL, with one worker.

use std::future::Future;
use std::time::Duration;

use dlock::queue::{Claimed, Jobs, QueuedJob};
use dlock::redis::Queue;
use dlock::{Instant, LockKey, Runtime, TokioRuntime};
use resource::fence::WriteSeq;
use resource::jobs::{
    JobGrant, JobRecord, JobStatements, Part, PostgresJobRecord, PostgresJobs, enqueue, job_key,
};
use resource::postgres::ConnectPostgres;
use resource::{OwnerToken, ResourceKey};
use tokio::runtime::{Builder, Handle};
use tokio_postgres::{Error, Transaction};

use super::PeerError;
use super::slice::{Job, Peer, Scenario, Slice, Stopped, nanos};
use crate::work::Connector;

/// The timeout of each step.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the job's scenario, [`Scenario::Claim`] or [`Scenario::Drain`], on an empty queue of Redis.
pub(super) async fn on_redis(queue: Queue<TokioRuntime>, job: &Job) -> Result<Slice, Stopped> {
    run(Worker { queue, end: Remove, first: 0 }, job).await
}

/// Our job queue on PostgreSQL as a peer.
pub(super) struct OnPostgres {
    url: String,
    /// The number of the next job: the numbers of all queues of a database differ.
    next: u64,
}

const ON_POSTGRES: &str = "dlock, PostgreSQL";

impl Peer for OnPostgres {
    fn name(&self) -> &'static str {
        ON_POSTGRES
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        block_on(self.slice(job))
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, Stopped>>) -> Result<T, PeerError> {
    let failed = |error: String| PeerError::Failed { name: ON_POSTGRES, what: error };
    let executor = Builder::new_current_thread().enable_all().build();
    let executor = executor.map_err(|error| failed(error.to_string()))?;
    executor.block_on(work).map_err(|error| failed(error.to_string()))
}

impl OnPostgres {
    /// Makes the tables of the queue on the PostgreSQL at `url`.
    pub(super) fn with_tables(url: String) -> Result<Self, PeerError> {
        block_on(async {
            let client = Connector::new(TokioRuntime::new(Handle::current()), &url)?.connect().await?;
            Ok(resource::fence::migrate(&client).await?)
        })?;
        Ok(Self { url, next: 0 })
    }

    /// Returns the URL of the server.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    async fn slice(&mut self, job: &Job) -> Result<Slice, Stopped> {
        let runtime = TokioRuntime::new(Handle::current());
        let (key, connector) = (LockKey::new(&job.name, "0")?, Connector::new(runtime.clone(), &self.url)?);
        let queue = PostgresJobs::new(key, runtime.clone(), connector.clone());
        let end = Commit(PostgresJobRecord::new(runtime, connector, job.ttl(), NoEffect));
        let first = self.next;
        self.next += job.operations + 1;
        run(Worker { queue, end, first }, job).await
    }
}

/// The last step of a job.
trait End<Q> {
    /// Finishes the job. Returns false if its claim is over.
    fn finish(
        &mut self,
        queue: &Q,
        job: &QueuedJob,
        deadline: Instant,
    ) -> impl Future<Output = Result<bool, Stopped>>;
}

/// Removes the job from the queue.
struct Remove;

impl<Q: Jobs> End<Q> for Remove {
    async fn finish(&mut self, queue: &Q, job: &QueuedJob, deadline: Instant) -> Result<bool, Stopped> {
        Ok(queue.finish(job, deadline).await?)
    }
}

/// Commits that the job is done, in the table of the queue.
struct Commit(PostgresJobRecord<TokioRuntime, Connector, NoEffect>);

/// The statements of a job without an effect.
struct NoEffect;

impl JobStatements for NoEffect {
    async fn run(
        &mut self,
        _: &mut Transaction<'_>,
        _: &JobGrant,
        _: WriteSeq,
        _: &Part,
    ) -> Result<(), Error> {
        Ok(())
    }
}

impl<Q: Jobs> End<Q> for Commit {
    async fn finish(&mut self, queue: &Q, job: &QueuedJob, deadline: Instant) -> Result<bool, Stopped> {
        let key: ResourceKey = job_key(queue.key(), job.id)?;
        let grant = JobGrant { key, token: job.token, owner: Some(OwnerToken::new(job.owner.as_str())?) };
        let number = WriteSeq::new(1).ok_or("numbers of writes begin with 1")?;
        self.0.commit(&grant, number, &Part::Done(Vec::new()), deadline).await?;
        Ok(true)
    }
}

/// A worker of a queue.
struct Worker<Q, E> {
    queue: Q,
    end: E,
    /// The number of the first job.
    first: u64,
}

async fn run<Q, E>(mut worker: Worker<Q, E>, job: &Job) -> Result<Slice, Stopped>
where
    Q: Jobs<Runtime = TokioRuntime>,
    E: End<Q>,
{
    // Opens the connections, and loads the scripts.
    worker.store(0, job).await?;
    worker.work(job).await?;
    match job.scenario {
        Scenario::Drain => worker.drain(job).await,
        _ => worker.claim(job).await,
    }
}

impl<Q: Jobs<Runtime = TokioRuntime>, E: End<Q>> Worker<Q, E> {
    async fn claim(&mut self, job: &Job) -> Result<Slice, Stopped> {
        let mut slice = Slice { completed: job.operations, ..Slice::default() };
        let begun = self.now();
        for number in 1..=job.operations {
            self.store(number, job).await?;
            let called = self.now();
            let (claimed, finished) = self.work(job).await?;
            slice.acquire_ns.push(nanos(claimed.saturating_since(called)));
            slice.release_ns.push(nanos(finished.saturating_since(claimed)));
        }
        slice.elapsed_ns = nanos(self.now().saturating_since(begun));
        Ok(slice)
    }

    async fn drain(&mut self, job: &Job) -> Result<Slice, Stopped> {
        for number in 1..=job.operations {
            self.store(number, job).await?;
        }
        let begun = self.now();
        for _ in 0..job.operations {
            self.work(job).await?;
        }
        let elapsed_ns = nanos(self.now().saturating_since(begun));
        Ok(Slice { completed: job.operations, elapsed_ns, ..Slice::default() })
    }

    /// Stores a job, to be claimed at once.
    async fn store(&self, number: u64, job: &Job) -> Result<(), Stopped> {
        let id = self.first + number;
        enqueue(&self.queue, id, job.name.as_bytes(), Duration::ZERO, self.deadline()).await?;
        Ok(())
    }

    /// Claims the next job and finishes it; returns when it was claimed, and when finished.
    async fn work(&mut self, job: &Job) -> Result<(Instant, Instant), Stopped> {
        let Claimed::Job(claimed) = self.queue.claim(job.ttl(), None, self.deadline()).await? else {
            return Err("the queue has no job that was stored".into());
        };
        let granted = self.now();
        if !self.end.finish(&self.queue, &claimed, self.deadline()).await? {
            return Err("the claim of a job was over before it was finished".into());
        }
        Ok((granted, self.now()))
    }

    fn deadline(&self) -> Instant {
        self.now() + ANSWER_TIMEOUT
    }

    fn now(&self) -> Instant {
        self.queue.runtime().now()
    }
}
