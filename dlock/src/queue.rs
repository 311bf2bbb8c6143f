//! A job queue: who should work on which job. [`redis::Queue`](crate::redis::Queue) is one on Redis.
//!
//! Workers claim jobs. A claim has a lease by the server's clock, which keeps other workers away, and a
//! fencing token, which is above those of all earlier claims. A worker extends its lease while it works. If
//! it dies, the lease ends, and the next worker claims the job. A job that fails is claimed again after a
//! pause; one that fails too often is dead, until an operator requeues it.
//!
//! The lease is a prefilter: a worker that pauses for longer does not know that the job is another's. Where
//! the effect is kept, the token must decide: commit the effect and the end of the job there in one step, and
//! only then call [`Jobs::finish`]. A worker that has claimed a job asks there first whether it is done.
//! `resource::jobs` does all of this. The queue is in this crate, since it needs its connection to Redis, its
//! scripts and its owner tokens, and no resource.
//!
//! # What it does not promise
//!
//! - That a job's work is done once: its worker may die before the commit.
//! - That jobs end in the order in which they were stored.
//! - A Redis that loses writes which it has acknowledged (a crash without fsync, a failover to a replica that
//!   lags) loses the jobs stored by them, and may bring back jobs that are finished. They are found to be
//!   done, as long as their numbers are unique for all time. It may also hand tokens out again, which the
//!   resource refuses: [`Jobs::catch_up`].
//!
//! Source: the visibility timeout of Amazon SQS, kept in a sorted set as by Carlson, "Redis in Action",
//! section 6.4 (2013), on the server's clock; the durable transition, Computing Series, part 018, section 23.

use std::future::Future;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};

use crate::error::BackendError;
use crate::key::LockKey;
use crate::token::{FencingToken, Owner};

/// A queue of jobs. A step with a claimed job returns false if the claim is over: another worker has claimed
/// the job since, or it is finished or dead. After an error the step may have been taken.
///
/// Durations count in milliseconds, up to a hundred years.
pub trait Jobs: Send + Sync {
    /// The runtime, whose clock reads the deadlines.
    type Runtime: Runtime;

    /// Returns the runtime.
    fn runtime(&self) -> &Self::Runtime;

    /// Returns the name of the queue.
    fn key(&self) -> &LockKey;

    /// Stores a job, to be claimed after `delay` at the earliest. The caller chooses its number, which must
    /// be unique in the queue for all time, such as the primary key of an order. It may be repeated after a
    /// lost answer. Returns false if the job is dead, and so not stored again.
    ///
    /// # Errors
    ///
    /// [`BackendError`].
    fn enqueue(
        &self,
        id: u64,
        payload: &[u8],
        delay: Duration,
        deadline: Instant,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;

    /// Claims the job whose time comes first, if it has come, and keeps other workers away from it for
    /// `lease`. `instance` names the process in logs.
    ///
    /// # Errors
    ///
    /// [`BackendError`]: a job may be claimed, and nobody works on it before its lease ends.
    fn claim(
        &self,
        lease: Duration,
        instance: Option<&str>,
        deadline: Instant,
    ) -> impl Future<Output = Result<Claimed, BackendError>> + Send;

    /// Extends the lease of a claim: it lasts for `lease` from now, even if it was over. Call it every third
    /// of the lease while the work goes on. If it returns false, stop the work.
    ///
    /// # Errors
    ///
    /// [`BackendError`].
    fn extend(
        &self,
        job: &QueuedJob,
        lease: Duration,
        deadline: Instant,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;

    /// Gives a job back after a failure, to be claimed again after `pause`.
    ///
    /// # Errors
    ///
    /// [`BackendError`].
    fn retry(
        &self,
        job: &QueuedJob,
        pause: Duration,
        error: &str,
        deadline: Instant,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;

    /// Gives a job back at once, after the resource has refused its token since it has seen `seen`. If the
    /// claim is not over, the server has lost its counter of tokens: it is raised to `seen`, and the attempt
    /// does not count.
    ///
    /// # Errors
    ///
    /// [`BackendError`].
    fn catch_up(
        &self,
        job: &QueuedJob,
        seen: FencingToken,
        deadline: Instant,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;

    /// Removes a job whose effect is committed.
    ///
    /// # Errors
    ///
    /// [`BackendError`].
    fn finish(
        &self,
        job: &QueuedJob,
        deadline: Instant,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;

    /// Makes a job dead.
    ///
    /// # Errors
    ///
    /// [`BackendError`].
    fn bury(
        &self,
        job: &QueuedJob,
        error: &str,
        deadline: Instant,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;
}

/// A claimed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedJob {
    /// Its number.
    pub id: u64,
    /// The token of this claim, above those of all earlier claims in the queue.
    pub token: FencingToken,
    /// The owner token of this claim.
    pub owner: Owner,
    /// The number of claims, this one included, since it was stored or requeued.
    pub attempts: u64,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The job is the caller's, until its lease ends.
    Job(QueuedJob),
    /// No job is ready: others are at work, or jobs wait for their time.
    Wait {
        /// The time until the next job may be claimed, by the server's clock.
        left: Duration,
    },
    /// The queue is empty, but for dead jobs.
    Empty,
}

/// A dead job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadJob {
    /// Its number.
    pub id: u64,
    /// The error of its last attempt.
    pub error: String,
}
