//! A job queue in a table. A claim has a lease, which is a prefilter, and a token, which is the truth: a job
//! is completed in the transaction of the worker's own statements, on the condition that the token is still
//! that of the latest claim.
//!
//! Source: `FOR UPDATE SKIP LOCKED` of PostgreSQL; the lease and the conditional transition, Computing
//! Series, part 018, section 23.

use std::time::Duration;

use dlock::{Backoff, FencingToken};
use serde_json::{Value, json};

use super::{PostgresTransaction, Stop};

const ENQUEUE: &str = include_str!("enqueue.sql");
const BURY: &str = include_str!("bury.sql");
const CLAIM: &str = include_str!("claim.sql");
const HEARTBEAT: &str = include_str!("heartbeat.sql");
const PROGRESS: &str = include_str!("progress.sql");
const COMPLETE: &str = include_str!("complete.sql");
const FAIL: &str = include_str!("fail.sql");
const REQUEUE: &str = include_str!("requeue.sql");

/// A queue of jobs in the table `queue_job`, which [`migrate`](crate::migrate) creates. All its workers
/// should agree on the fields. Durations count in milliseconds, up to a hundred years.
///
/// A job takes effect once, if the effect is rows of this database: [`JobQueue::complete`] commits them with
/// the job's end, under the token of the claim. A worker that has paused past its lease is refused if another
/// one has claimed the job since. The work itself may be done again, as long as no commit was acknowledged:
/// effects elsewhere need [`Job::token`], or a key by which their receiver recognises a repetition.
#[derive(Clone, Debug)]
pub struct JobQueue {
    /// The name of the queue.
    pub name: String,
    /// The time for which a claim keeps other workers away, from the claim or the last heartbeat, by the
    /// server's clock.
    pub lease: Duration,
    /// The most attempts of a job: after the last one it is dead.
    pub attempts_max: u32,
    /// The pause before another attempt of a job that has failed.
    pub backoff: Backoff,
}

/// A claimed job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// The token of this claim, above those of all earlier claims. A resource outside of the database can
    /// check it, too.
    pub token: FencingToken,
    /// The number of attempts, this one included.
    pub attempts: u64,
    /// Its payload.
    pub payload: Value,
    /// The progress that an earlier attempt has committed; `None` if none has.
    pub progress: Option<Value>,
}

/// The fate of a job that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It is claimed again after a pause.
    Retried {
        /// The pause.
        after: Duration,
    },
    /// It is dead: an operator may requeue it.
    Dead,
}

/// A step of a job that was not taken.
#[derive(Debug, thiserror::Error)]
pub enum JobStop<E> {
    /// The claim is over: another worker has claimed the job since, or it is done or dead. Drop the
    /// transaction: nothing of it may be committed.
    #[error("the claim of job {id} with token {token} is over: drop the transaction")]
    Superseded {
        /// The job.
        id: u64,
        /// The token of the claim.
        token: FencingToken,
    },
    /// The transaction failed.
    #[error(transparent)]
    Stop(#[from] Stop<E>),
}

impl JobQueue {
    /// Creates a queue with leases of 30 s and 5 attempts, which are 1 s to 5 minutes apart.
    pub fn new(name: &str) -> Self {
        let backoff = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(300) };
        Self { name: name.to_owned(), lease: Duration::from_secs(30), attempts_max: 5, backoff }
    }

    /// Stores a job in the caller's transaction, to be claimed after `delay` at the earliest. Returns its
    /// number.
    ///
    /// # Errors
    ///
    /// [`JobStop::Stop`] if the transaction failed.
    pub async fn enqueue<T: PostgresTransaction>(
        &self,
        transaction: &mut T,
        payload: &Value,
        delay: Duration,
    ) -> Result<u64, JobStop<T::Error>> {
        let parameters = json!({ "queue": self.name, "payload": payload, "delay_ms": millis(delay) });
        let answer = ask(transaction, ENQUEUE, parameters).await?;
        answer.as_ref().and_then(Value::as_u64).ok_or(JobStop::Stop(Stop::Corrupt("a job has no number")))
    }

    /// Claims the next job for `owner`, a text for operators; `None` if no job is ready. Commit the
    /// transaction before the work: the lease keeps other workers away.
    ///
    /// Makes jobs dead whose workers have died in their last attempt.
    ///
    /// # Errors
    ///
    /// [`JobStop::Stop`] if the transaction failed.
    pub async fn claim<T: PostgresTransaction>(
        &self,
        transaction: &mut T,
        owner: &str,
    ) -> Result<Option<Job>, JobStop<T::Error>> {
        let bury = json!({ "queue": self.name, "attempts_max": self.attempts_max });
        while ask(transaction, BURY, bury.clone()).await?.is_some() {}
        let lease_ms = millis(self.lease);
        let max = self.attempts_max;
        let claim = json!({ "queue": self.name, "owner": owner, "lease_ms": lease_ms, "attempts_max": max });
        ask(transaction, CLAIM, claim).await?.map(|answer| job::<T>(&answer)).transpose()
    }

    /// Extends the lease of a claim. Call it every third of the lease while the work goes on.
    ///
    /// # Errors
    ///
    /// [`JobStop::Superseded`]: stop the work.
    pub async fn heartbeat<T: PostgresTransaction>(
        &self,
        transaction: &mut T,
        job: &Job,
    ) -> Result<(), JobStop<T::Error>> {
        self.step(transaction, job, HEARTBEAT, json!({ "lease_ms": millis(self.lease) })).await.map(drop)
    }

    /// Commits a part of a batch: `progress` and the caller's statements commit together. The next attempt
    /// gets it as [`Job::progress`]. Extends the lease.
    ///
    /// # Errors
    ///
    /// As [`JobQueue::complete`].
    pub async fn advance<T: PostgresTransaction>(
        &self,
        transaction: &mut T,
        job: &Job,
        progress: &Value,
    ) -> Result<(), JobStop<T::Error>> {
        let parameters = json!({ "lease_ms": millis(self.lease), "progress": progress });
        self.step(transaction, job, PROGRESS, parameters).await.map(drop)
    }

    /// Completes the job in the caller's transaction: its statements and the end of the job commit together.
    /// Call it before them, and let `?` leave the function. It may come after the end of the lease, as long
    /// as no other worker has claimed the job.
    ///
    /// # Errors
    ///
    /// [`JobStop::Superseded`] if the claim is over: the transaction is made to fail, so that a caller who
    /// ignores the error commits nothing.
    pub async fn complete<T: PostgresTransaction>(
        &self,
        transaction: &mut T,
        job: &Job,
    ) -> Result<(), JobStop<T::Error>> {
        self.step(transaction, job, COMPLETE, json!({})).await.map(drop)
    }

    /// Gives the job back after a failure: for another attempt after a pause, or as dead after the last one.
    /// `random` spreads the pauses of several workers.
    ///
    /// # Errors
    ///
    /// [`JobStop::Superseded`] if the claim is over.
    pub async fn fail<T: PostgresTransaction>(
        &self,
        transaction: &mut T,
        job: &Job,
        error: &str,
        random: [u8; 8],
    ) -> Result<Failed, JobStop<T::Error>> {
        let retry = u32::try_from(job.attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        let after = self.backoff.wait(retry, random);
        let parameters =
            json!({ "error": error, "attempts_max": self.attempts_max, "delay_ms": millis(after) });
        let state = self.step(transaction, job, FAIL, parameters).await?;
        Ok(if state == "dead" { Failed::Dead } else { Failed::Retried { after } })
    }

    /// Makes a dead job ready again, with all its attempts; returns false if the queue has no dead job of
    /// that number.
    ///
    /// # Errors
    ///
    /// [`JobStop::Stop`] if the transaction failed.
    pub async fn requeue<T: PostgresTransaction>(
        &self,
        transaction: &mut T,
        id: u64,
    ) -> Result<bool, JobStop<T::Error>> {
        Ok(ask(transaction, REQUEUE, json!({ "queue": self.name, "id": id })).await?.is_some())
    }

    /// Runs a statement under the token of the claim.
    async fn step<T: PostgresTransaction>(
        &self,
        transaction: &mut T,
        job: &Job,
        statement: &'static str,
        mut parameters: Value,
    ) -> Result<Value, JobStop<T::Error>> {
        parameters["id"] = job.id.into();
        parameters["token"] = job.token.as_u64().into();
        let answer = ask(transaction, statement, parameters).await?;
        if answer.is_none() {
            transaction.abort().await;
        }
        answer.ok_or(JobStop::Superseded { id: job.id, token: job.token })
    }
}

/// Runs a statement that returns one text of JSON, or no row.
async fn ask<T: PostgresTransaction>(
    transaction: &mut T,
    statement: &'static str,
    parameters: Value,
) -> Result<Option<Value>, JobStop<T::Error>> {
    let answer = transaction.json(statement, &parameters.to_string()).await.map_err(Stop::from)?;
    let read = |text: String| serde_json::from_str(&text).map_err(|_| Stop::Corrupt("no JSON").into());
    answer.map(read).transpose()
}

fn job<T: PostgresTransaction>(answer: &Value) -> Result<Job, JobStop<T::Error>> {
    let number = |field: &str| answer[field].as_u64();
    let parts = (number("id"), number("token").and_then(FencingToken::new), number("attempts"));
    let (Some(id), Some(token), Some(attempts)) = parts else {
        return Err(Stop::Corrupt("a job has no number, token or attempts").into());
    };
    let progress = Some(answer["progress"].clone()).filter(|progress| !progress.is_null());
    Ok(Job { id, token, attempts, payload: answer["payload"].clone(), progress })
}

/// Returns a duration in milliseconds, up to a hundred years: PostgreSQL adds it to its clock.
fn millis(duration: Duration) -> u64 {
    const CENTURY_MS: u64 = 100 * 365 * 24 * 3600 * 1000;
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(CENTURY_MS)
}
