//! A job queue of PostgreSQL, `fence::JobQueue`, with its jobs' effects in the same database: a part of a job
//! and the statements of its effect commit together, on the condition that the claim is still the latest.
//!
//! The queue and the record of the jobs are the same table, each on a connection of its own. A commit whose
//! answer is lost is not repeated: if it stands, the job is not claimed again.

mod steps;

use std::future::Future;
use std::time::Duration;

use dlock::queue::{Claimed, Jobs, QueuedJob};
use dlock::{BackendError, Backoff, FencingToken, Instant, LockKey, Owner, Runtime};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_postgres::{Error, Transaction};

use self::steps::Found;
use super::record::{JobGrant, JobRecord, JobRecordError, Part};
use crate::ResourceKey;
use crate::fence::{Job, JobQueue, JobStop, Refusal, WriteSeq};
use crate::hex::{hex, unhex};
use crate::postgres::{ConnectPostgres, PostgresError, PostgresSession};

/// A queue in the table `queue_job`, which `fence::migrate` creates. Its name is that of `key`.
///
/// Producers choose the numbers of jobs, which are the primary key of the table: they must differ between all
/// queues of the database, and none is given by `fence::JobQueue::enqueue`. They are at most 2⁶³ − 1.
pub struct PostgresJobs<R, C> {
    key: LockKey,
    runtime: R,
    session: Mutex<PostgresSession<R, C>>,
}

impl<R: Runtime, C: ConnectPostgres> PostgresJobs<R, C> {
    /// Creates a queue, which connects with its first step.
    pub fn new(key: LockKey, runtime: R, connect: C) -> Self {
        let session = Mutex::new(PostgresSession::new(runtime.clone(), connect));
        Self { key, runtime, session }
    }

    /// Returns the queue for a step. Jobs never die by a claim: the worker buries them, and emits it.
    fn queue(&self, lease: Duration) -> JobQueue {
        queue(self.key.name(), lease)
    }

    /// Gives a job back, or makes it dead if `attempts_max` is 0.
    async fn fail(
        &self,
        job: &QueuedJob,
        (attempts_max, pause): (u32, Duration),
        error: &str,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        let backoff = Backoff { base: pause, max: pause };
        let queue = JobQueue { attempts_max, backoff, ..self.queue(Duration::ZERO) };
        let (job, error) = (claimed(job), error.to_owned());
        let mut session = self.session.lock().await;
        taken(session.run(deadline, |client| steps::fail(client, queue, job, error)).await)
    }
}

impl<R: Runtime, C: ConnectPostgres> Jobs for PostgresJobs<R, C> {
    type Runtime = R;

    fn runtime(&self) -> &R {
        &self.runtime
    }

    fn key(&self) -> &LockKey {
        &self.key
    }

    async fn enqueue(
        &self,
        id: u64,
        payload: &[u8],
        delay: Duration,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        let queue = self.key.name();
        let delay_ms = u64::try_from(delay.min(DELAY_MAX).as_millis()).unwrap_or(u64::MAX);
        let parameters = json!({ "id": id, "queue": queue, "payload": hex(payload), "delay_ms": delay_ms });
        let mut session = self.session.lock().await;
        let before = session.run(deadline, |client| steps::enqueue(client, parameters)).await?;
        match before {
            Some(other) if other["queue"] != queue => Err(BackendError::Refused {
                message: format!("the queue {} has a job {id}: number jobs differently", other["queue"]),
                passing: false,
            }),
            before => Ok(before.is_none_or(|job| job["state"] != "dead")),
        }
    }

    async fn claim(
        &self,
        lease: Duration,
        instance: Option<&str>,
        deadline: Instant,
    ) -> Result<Claimed, BackendError> {
        let owner = Owner::random(&self.runtime, instance);
        let (queue, name) = (self.queue(lease), owner.prefix().to_owned());
        let mut session = self.session.lock().await;
        let job = match session.run(deadline, |client| steps::claim(client, queue, name)).await? {
            Found::Job(job) => job,
            Found::Wait(left) => return Ok(Claimed::Wait { left }),
            Found::Empty => return Ok(Claimed::Empty),
        };
        let Some(payload) = job.payload.as_str().and_then(unhex) else {
            let message = format!("the payload of job {} is not hexadecimal: enqueue jobs by Jobs", job.id);
            return Err(BackendError::Refused { message, passing: false });
        };
        Ok(Claimed::Job(QueuedJob { id: job.id, token: job.token, owner, attempts: job.attempts, payload }))
    }

    async fn extend(
        &self,
        job: &QueuedJob,
        lease: Duration,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        let (queue, job) = (self.queue(lease), claimed(job));
        let mut session = self.session.lock().await;
        taken(session.run(deadline, |client| steps::heartbeat(client, queue, job)).await)
    }

    async fn retry(
        &self,
        job: &QueuedJob,
        pause: Duration,
        error: &str,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        self.fail(job, (u32::MAX, pause), error, deadline).await
    }

    /// Returns false: tokens are those of a sequence, which loses none.
    async fn catch_up(&self, _: &QueuedJob, _: FencingToken, _: Instant) -> Result<bool, BackendError> {
        Ok(false)
    }

    /// Returns true: the commit of the last part has made the job done.
    async fn finish(&self, _: &QueuedJob, _: Instant) -> Result<bool, BackendError> {
        Ok(true)
    }

    async fn bury(&self, job: &QueuedJob, error: &str, deadline: Instant) -> Result<bool, BackendError> {
        self.fail(job, (0, Duration::ZERO), error, deadline).await
    }
}

/// The statements of a job's effect.
pub trait JobStatements: Send + Sync {
    /// Runs the statements of a part in `transaction`. `number` counts the parts of the grant, from 1.
    ///
    /// # Errors
    ///
    /// The client's error: the transaction is rolled back, and the part is not committed. So it is if a
    /// statement has failed and its error is not returned.
    fn run(
        &mut self,
        transaction: &mut Transaction<'_>,
        grant: &JobGrant,
        number: WriteSeq,
        part: &Part,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// The record of the jobs of a [`PostgresJobs`]. It keeps no results: the statements do.
pub struct PostgresJobRecord<R, C, S> {
    session: PostgresSession<R, C>,
    lease: Duration,
    statements: S,
}

impl<R: Runtime, C: ConnectPostgres, S: JobStatements> PostgresJobRecord<R, C, S> {
    /// Creates a record, which connects with its first step. A committed part extends the lease of its claim
    /// to `lease`.
    pub const fn new(runtime: R, connect: C, lease: Duration, statements: S) -> Self {
        Self { session: PostgresSession::new(runtime, connect), lease, statements }
    }
}

impl<R: Runtime, C: ConnectPostgres, S: JobStatements> JobRecord for PostgresJobRecord<R, C, S> {
    type Error = PostgresError;

    async fn claim(
        &mut self,
        grant: &JobGrant,
        deadline: Instant,
    ) -> Result<Option<Part>, JobRecordError<PostgresError>> {
        let job = job_of(grant)?;
        let row = self.session.run(deadline, |client| steps::look(client, job.id)).await;
        let row = row.map_err(JobRecordError::Failed)?;
        let Some(row) = row else {
            return Err(JobRecordError::Corrupt(format!("the table has no job {}", job.id)));
        };
        part_of(&row, grant.token)
    }

    async fn commit(
        &mut self,
        grant: &JobGrant,
        number: WriteSeq,
        part: &Part,
        deadline: Instant,
    ) -> Result<(), JobRecordError<PostgresError>> {
        let job = job_of(grant)?;
        // A claimed job is found by its number: the name of its queue is not asked for.
        let (statements, queue) = (&mut self.statements, queue("", self.lease));
        let committed = self
            .session
            .run(deadline, move |client| steps::commit(client, (queue, job), statements, grant, number, part))
            .await;
        committed.map_err(|error| match error {
            PostgresError::Stop(JobStop::Superseded { .. }) => superseded(None, grant.token),
            error => JobRecordError::Failed(error),
        })
    }
}

/// The longest delay of a job: a hundred years.
const DELAY_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

fn queue(name: &str, lease: Duration) -> JobQueue {
    JobQueue { lease, attempts_max: u32::MAX, ..JobQueue::new(name) }
}

/// Returns a claimed job as a step of [`JobQueue`] takes it.
fn claimed(job: &QueuedJob) -> Job {
    let QueuedJob { id, token, attempts, .. } = *job;
    Job { id, token, attempts, payload: Value::Null, progress: None }
}

/// Returns the job of a grant: its number is the end of its resource's name.
fn job_of(grant: &JobGrant) -> Result<Job, JobRecordError<PostgresError>> {
    let id = number_of(&grant.key);
    let id = id.ok_or_else(|| JobRecordError::Corrupt(format!("`{}` names no job", grant.key)))?;
    Ok(Job { id, token: grant.token, attempts: 1, payload: Value::Null, progress: None })
}

/// Returns the number of the job whose resource has this name; `None` if it is that of no job.
pub fn number_of(key: &ResourceKey) -> Option<u64> {
    key.as_str().rsplit('/').next()?.parse().ok()
}

/// Reads the row of a job for a claim with this token.
fn part_of(row: &Value, token: FencingToken) -> Result<Option<Part>, JobRecordError<PostgresError>> {
    let latest = row["token"].as_u64().and_then(FencingToken::new);
    match row["state"].as_str() {
        Some("done") => Ok(Some(Part::Done(Vec::new()))),
        Some("running") if latest == Some(token) => match &row["progress"] {
            Value::Null => Ok(None),
            progress => match progress.as_str().and_then(unhex) {
                Some(progress) => Ok(Some(Part::Progress(progress))),
                None => Err(JobRecordError::Corrupt(format!("the progress {progress} is not hexadecimal"))),
            },
        },
        _ => Err(superseded(latest, token)),
    }
}

/// Returns the refusal of a claim that is over. A job that was given back has no token.
fn superseded(latest: Option<FencingToken>, got: FencingToken) -> JobRecordError<PostgresError> {
    JobRecordError::Refused(Refusal::Stale { seen: latest.unwrap_or(got), got })
}

/// Returns false for a claim that is over.
fn taken<T>(result: Result<T, PostgresError>) -> Result<bool, BackendError> {
    match result {
        Ok(_) => Ok(true),
        Err(PostgresError::Stop(JobStop::Superseded { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(token: u64) -> FencingToken {
        FencingToken::new(token).unwrap()
    }

    #[test]
    fn a_claim_reads_the_progress_or_the_end_of_its_job() {
        let part = |row: Value| part_of(&row, token(7)).ok();
        let running = |progress: Value| json!({ "state": "running", "token": 7, "progress": progress });
        assert_eq!(part(running(Value::Null)), Some(None));
        assert_eq!(part(running(json!("3132"))), Some(Some(Part::Progress(b"12".to_vec()))));
        assert_eq!(part(running(json!(12))), None);
        let done = json!({ "state": "done", "token": 9, "progress": null });
        assert_eq!(part(done), Some(Some(Part::Done(Vec::new()))));
    }

    #[test]
    fn a_claim_that_is_over_is_refused() {
        let seen = |row: Value| match part_of(&row, token(7)) {
            Err(JobRecordError::Refused(refusal)) => refusal.seen(),
            _ => None,
        };
        assert_eq!(seen(json!({ "state": "running", "token": 8, "progress": null })), Some(token(8)));
        assert_eq!(seen(json!({ "state": "ready", "token": null, "progress": null })), Some(token(7)));
    }
}
