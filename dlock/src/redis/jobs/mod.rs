//! The job queue on one Redis. Each step is one script and one round trip.
//!
//! The jobs are a sorted set, ordered by the time from which they may be claimed: that of a claimed job is
//! the end of its lease. Their parts are a hash beside it (`p7` is the payload of job 7, `c7` its claim, `a7`
//! its attempts, `e7` its last error; `token` is the counter of claims), and the dead jobs are another sorted
//! set. A claim is its token, a blank, and its owner token: nobody else can take a step for it, even if the
//! server has lost its counter and gives a token twice.

mod reply;

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};
use redis::Value;

use super::script::{Arg, Call, Script, StoredKey};
use super::{Redis, reply as replies};
use crate::backend::Backend;
use crate::error::BackendError;
use crate::key::LockKey;
use crate::queue::{Claimed, DeadJob, Jobs, QueuedJob};
use crate::token::{FencingToken, Owner};

static ENQUEUE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("enqueue_job.lua")));
static CLAIM: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("claim_job.lua")));
static EXTEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("extend_job.lua")));
static RETRY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("retry_job.lua")));
static FINISH: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("finish_job.lua")));
static BURY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("bury_job.lua")));
static REQUEUE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("requeue_job.lua")));
static DEAD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("dead_jobs.lua")));

/// The end of the key with the jobs by their times.
const QUEUE: &str = "}:queue";

/// The end of the key with the parts of the jobs.
const JOBS: &str = "}:jobs";

/// The end of the key with the dead jobs.
const DEAD_JOBS: &str = "}:dead";

/// A job queue on one Redis, which [`dlock::queue`](crate::queue) describes. Clones share a connection.
///
/// It is stored as parts of a [`LockKey`]: give it one that nobody locks.
///
/// # Example
///
/// ```no_run
/// use std::time::Duration;
///
/// use dlock::queue::{Claimed, Jobs};
/// use dlock::redis::{Queue, Redis, RedisOptions};
/// use dlock::{LockKey, Runtime, TokioRuntime};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
/// let redis = Redis::new(runtime.clone(), "127.0.0.1:6379", RedisOptions::default())?;
/// let queue = Queue::new(redis, LockKey::new("jobs", "mails")?);
/// let deadline = runtime.now() + Duration::from_secs(5);
/// queue.enqueue(42, b"to: ada@example.org", Duration::ZERO, deadline).await?;
/// if let Claimed::Job(job) = queue.claim(Duration::from_secs(30), Some("worker-1"), deadline).await? {
///     // … commit the effect, with job.token, where it is kept …
///     queue.finish(&job, deadline).await?;
/// }
/// # Ok(()) }
/// ```
pub struct Queue<R: Runtime> {
    redis: Redis<R>,
    key: LockKey,
}

impl<R: Runtime> Queue<R> {
    /// Creates the queue of the name `key`. Sends nothing.
    pub const fn new(redis: Redis<R>, key: LockKey) -> Self {
        Self { redis, key }
    }

    /// Makes a dead job ready again, with all its attempts. Returns false if the queue has no dead job of
    /// that number.
    ///
    /// # Errors
    ///
    /// [`BackendError`]: it may be ready.
    pub async fn requeue(&self, id: u64, deadline: Instant) -> Result<bool, BackendError> {
        self.done(&REQUEUE, 3, &[Arg::Number(id)], deadline).await
    }

    /// Lists at most `max` dead jobs, the latest first.
    ///
    /// # Errors
    ///
    /// [`BackendError`].
    pub async fn dead(&self, max: u32, deadline: Instant) -> Result<Vec<DeadJob>, BackendError> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let value = self.ask(&DEAD, &self.keys()[1..], &[Arg::Number(max.into())], deadline).await?;
        reply::dead(&value)
    }

    /// Runs a script on a claimed job, with the first `count` keys; returns whether the claim was not over.
    async fn step(
        &self,
        script: &Script,
        count: usize,
        job: &QueuedJob,
        args: &[Arg<'_>],
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        let claim = format!("{} {}", job.token, job.owner.as_str());
        let args = [&[Arg::Number(job.id), Arg::Text(&claim)], args].concat();
        self.done(script, count, &args, deadline).await
    }

    async fn done(
        &self,
        script: &Script,
        count: usize,
        args: &[Arg<'_>],
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        replies::is_done(&self.ask(script, &self.keys()[..count], args, deadline).await?)
    }

    async fn ask(
        &self,
        script: &Script,
        keys: &[StoredKey<'_>],
        args: &[Arg<'_>],
        deadline: Instant,
    ) -> Result<Value, BackendError> {
        let call = Call { script, keys, args };
        let (_, value) = self.redis.client.node.eval(call, deadline, |_| ()).await?;
        Ok(value)
    }

    fn keys(&self) -> [StoredKey<'_>; 3] {
        [QUEUE, JOBS, DEAD_JOBS].map(|part| StoredKey::new(&self.key, part))
    }
}

impl<R: Runtime> Jobs for Queue<R> {
    type Runtime = R;

    fn runtime(&self) -> &R {
        self.redis.runtime()
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
        let args = [Arg::Number(id), Arg::Bytes(payload), millis(delay)];
        self.done(&ENQUEUE, 3, &args, deadline).await
    }

    async fn claim(
        &self,
        lease: Duration,
        instance: Option<&str>,
        deadline: Instant,
    ) -> Result<Claimed, BackendError> {
        let owner = Owner::random(self.runtime(), instance);
        let args = [Arg::Text(owner.as_str()), millis(lease)];
        let value = self.ask(&CLAIM, &self.keys()[..2], &args, deadline).await?;
        reply::claimed(&value, owner)
    }

    async fn extend(
        &self,
        job: &QueuedJob,
        lease: Duration,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        self.step(&EXTEND, 2, job, &[millis(lease)], deadline).await
    }

    async fn retry(
        &self,
        job: &QueuedJob,
        pause: Duration,
        error: &str,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        self.step(&RETRY, 2, job, &[millis(pause), Arg::Text(error)], deadline).await
    }

    async fn catch_up(
        &self,
        job: &QueuedJob,
        seen: FencingToken,
        deadline: Instant,
    ) -> Result<bool, BackendError> {
        let error = Arg::Text("the resource has seen a higher token");
        let args = [Arg::Number(0), error, Arg::Number(seen.as_u64())];
        self.step(&RETRY, 2, job, &args, deadline).await
    }

    async fn finish(&self, job: &QueuedJob, deadline: Instant) -> Result<bool, BackendError> {
        self.step(&FINISH, 2, job, &[], deadline).await
    }

    async fn bury(&self, job: &QueuedJob, error: &str, deadline: Instant) -> Result<bool, BackendError> {
        self.step(&BURY, 3, job, &[Arg::Text(error)], deadline).await
    }
}

impl<R: Runtime> Clone for Queue<R> {
    fn clone(&self) -> Self {
        Self { redis: self.redis.clone(), key: self.key.clone() }
    }
}

impl<R: Runtime> fmt::Debug for Queue<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("key", &self.key.name()).finish_non_exhaustive()
    }
}

/// Returns a duration that a script adds to the time of the server: a hundred years at most.
fn millis(duration: Duration) -> Arg<'static> {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Arg::Millis(duration.min(CENTURY))
}
