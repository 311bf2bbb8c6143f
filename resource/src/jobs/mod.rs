//! Workers of a job queue: each job takes effect once, and none is lost. [`dlock::queue`] is the queue.
//!
//! A worker claims a job of the queue, and then at the resource, with the token of its claim
//! ([`JobRecord::claim`], a fenced read). If the job is done there, it only removes it from the queue. Else
//! it works, part by part, and commits each part at the resource with the token; the last one commits the
//! result, and that the job is done. Only then it removes the job from the queue. So a job whose commit was
//! acknowledged is never run again, and a worker that was paused for longer than its lease is refused at the
//! resource. It extends the lease while it works.
//!
//! The queue is only asked who should work; the resource decides. That is why the worker is here, and the
//! queue in `dlock`, which knows no resource. On PostgreSQL both are one table, and a part of a job commits
//! in one transaction with the statements of its effect: `PostgresJobs` (feature `postgres`), on
//! `fence::JobQueue`.
//!
//! # What it does not promise
//!
//! - That a job's work is done once: a worker may die, or pause for longer than its lease, between its work
//!   and its commit. Effects elsewhere need the token ([`Task::token`]), or a key by which their receiver
//!   recognises a repetition.
//! - That jobs survive a Redis that loses writes: see [`dlock::queue`]. Those that do take effect once.
//! - That two workers with different terms agree.

#[cfg(feature = "postgres")]
mod postgres;
mod record;
mod run;

use std::future::Future;
use std::time::Duration;

use dlock::queue::{Claimed, Jobs, QueuedJob};
use dlock::{BackendError, Backoff, FencingToken, Instant, LockKey, Runtime};
use dlock_runtime::{probes, sometimes};
use futures_util::future::{Either, select};
use history::emit;

#[cfg(feature = "postgres")]
pub use self::postgres::{JobStatements, PostgresJobRecord, PostgresJobs, number_of};
pub use self::record::{JobGrant, JobRecord, JobRecordError, Part, ResourceJobs};
use self::run::{Run, Stop, heartbeats};
use crate::fence::Refusal;
use crate::worker::{Droppable, Ending, Pauses, Step};
use crate::{KeyError, OwnerToken, ResourceKey};

/// The terms of a queue's workers, on which all of them should agree.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The time for which a claim keeps other workers away, from the claim or the last heartbeat.
    pub lease: Duration,
    /// True if the lease is extended every third of it while the work goes on.
    pub heartbeat: bool,
    /// The most attempts of a job: after the last one it is dead.
    pub attempts_max: u64,
    /// The pause before another attempt of a job that has failed.
    pub backoff: Backoff,
    /// The timeout of each answer, of queue and resource, retries included.
    pub answer_timeout: Duration,
    /// The name of the process in logs.
    pub instance: Option<String>,
}

impl Default for Terms {
    /// Leases of 30 s with a heartbeat, 5 attempts, which are 1 s to 5 minutes apart, and 30 s for an answer.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            heartbeat: true,
            attempts_max: 5,
            backoff: Backoff { base: Duration::from_secs(1), max: Duration::from_secs(300) },
            answer_timeout: Duration::from_secs(30),
            instance: None,
        }
    }
}

/// A job, as its work sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub id: u64,
    /// The token of the claim: send it along with effects elsewhere.
    pub token: FencingToken,
    /// The number of attempts, this one included.
    pub attempts: u64,
    /// Its payload.
    pub payload: Vec<u8>,
    /// The progress that was committed last; `None` if none was.
    pub progress: Option<Vec<u8>>,
}

/// The outcome of one look at the queue.
#[derive(Debug)]
pub enum Worked {
    /// A job was claimed.
    Job {
        /// Its number.
        id: u64,
        /// Its fate.
        fate: Fate,
    },
    /// No job is ready.
    Wait {
        /// The time until the next one may be claimed.
        left: Duration,
    },
    /// The queue is empty, but for dead jobs.
    Empty,
}

/// The fate of a claimed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// This worker has done it.
    Done,
    /// It was done before: the answer to its commit was lost, or the end of its worker came before it was
    /// removed from the queue.
    DoneBefore,
    /// Its work failed, with this error; it is claimed again after a pause.
    Failed(String),
    /// It is dead, with this error.
    Dead(String),
    /// It is another worker's now, or comes back: the reason.
    Left(Ending),
}

/// A look at the queue that failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The queue gave no answer. A claimed job comes back when its lease ends.
    #[error(transparent)]
    Queue(#[from] BackendError),
    /// The queue's name and the job's number can't name a resource.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Returns the key of a job's resource: the name of the queue, a slash, and the number of the job.
///
/// # Errors
///
/// [`KeyError`] if the queue's name is too long.
pub fn job_key(queue: &LockKey, id: u64) -> Result<ResourceKey, KeyError> {
    ResourceKey::new(&format!("{}/{id}", queue.name()))
}

/// Stores a job, as [`Jobs::enqueue`] does, and emits that it is due.
///
/// # Errors
///
/// [`BackendError`]: the job may be stored. Call it again: the queue stores a number once.
pub async fn enqueue<Q: Jobs>(
    queue: &Q,
    id: u64,
    payload: &[u8],
    delay: Duration,
    deadline: Instant,
) -> Result<bool, BackendError> {
    let is_stored = queue.enqueue(id, payload, delay, deadline).await?;
    if is_stored {
        emit!(TaskDue { key: queue.key().id_hash(), task: id });
    }
    Ok(is_stored)
}

/// Works on the jobs of a queue, one at a time: a queue, the guarded side, and the pauses between the steps.
pub struct JobWorker<Q, T, P = ()> {
    queue: Q,
    record: T,
    terms: Terms,
    pauses: P,
}

impl<Q: Jobs, T: JobRecord, P: Pauses> JobWorker<Q, T, P> {
    /// Creates a worker on `queue`, whose jobs are committed at `record`.
    pub fn new(queue: Q, record: T, terms: Terms, pauses: P) -> Self {
        Self { queue, record, terms, pauses }
    }

    /// Returns the queue.
    pub const fn queue(&self) -> &Q {
        &self.queue
    }

    /// Looks at the queue once: claims a job, runs it, commits it and removes it. `work` does a part of a job
    /// and returns it, to be committed: after [`Part::Progress`] it is called again, with that progress. An
    /// error fails the attempt.
    ///
    /// # Errors
    ///
    /// [`WorkError`] if no job was claimed. All else is in [`Worked`].
    pub async fn work<F>(&mut self, work: impl FnMut(Task) -> F + Send) -> Result<Worked, WorkError>
    where
        F: Future<Output = Result<Part, String>> + Send,
    {
        match self.claim().await? {
            Claimed::Wait { left } => Ok(Worked::Wait { left }),
            Claimed::Empty => Ok(Worked::Empty),
            Claimed::Job(job) => Ok(Worked::Job { id: job.id, fate: self.run(&job, work).await? }),
        }
    }

    /// Runs the first part of [`JobWorker::work`]: claims a job.
    ///
    /// # Errors
    ///
    /// As [`JobWorker::work`].
    pub async fn claim(&self) -> Result<Claimed, WorkError> {
        let key = self.queue.key();
        // Refuses a name that is too long before any job is claimed.
        job_key(key, u64::MAX)?;
        self.pause(key.id_hash(), Step::Asked).await;
        let instance = self.terms.instance.as_deref();
        let claimed = self.queue.claim(self.terms.lease, instance, self.deadline()).await?;
        if claimed == Claimed::Empty {
            emit!(TasksPassed { key: key.id_hash(), task: u64::MAX, outcome: "done" });
        }
        Ok(claimed)
    }

    /// Runs the rest: runs a claimed job, commits it and removes it.
    ///
    /// # Errors
    ///
    /// [`WorkError::Key`] if the queue's name is too long for a resource.
    pub async fn run<F>(
        &mut self,
        job: &QueuedJob,
        work: impl FnMut(Task) -> F + Send,
    ) -> Result<Fate, WorkError>
    where
        F: Future<Output = Result<Part, String>> + Send,
    {
        let owner = OwnerToken::new(job.owner.as_str()).ok();
        let grant = JobGrant { key: job_key(self.queue.key(), job.id)?, token: job.token, owner };
        let resource = grant.key.id_hash();
        self.pause(&resource, Step::Granted).await;
        let claimed = self.record.claim(&grant, self.deadline()).await;
        self.pause(&resource, Step::Read).await;
        let fate = match claimed {
            Ok(Some(Part::Done(_))) => {
                sometimes!(self.queue.runtime(), job_done_before, true);
                self.finish(job).await;
                Fate::DoneBefore
            }
            Ok(Some(Part::Progress(progress))) => self.go_on(job, &grant, Some(progress), work).await,
            Ok(None) => self.go_on(job, &grant, None, work).await,
            Err(error) => self.stop(job, &error).await,
        };
        self.pause(&resource, Step::Released).await;
        Ok(fate)
    }

    /// Runs a job that is not done, from this progress.
    async fn go_on<F>(
        &mut self,
        job: &QueuedJob,
        grant: &JobGrant,
        progress: Option<Vec<u8>>,
        work: impl FnMut(Task) -> F + Send,
    ) -> Fate
    where
        F: Future<Output = Result<Part, String>> + Send,
    {
        if job.attempts > self.terms.attempts_max {
            let error = format!("no answer from its worker in attempt {}", job.attempts - 1);
            return self.fail(job, error).await;
        }
        emit!(TaskStarted {
            key: self.queue.key().id_hash(),
            owner: job.owner.prefix(),
            token: job.token.as_u64(),
            task: job.id,
        });
        let pauses = self.pauses.clone();
        let (queue, terms) = (&self.queue, &self.terms);
        let run = Run { queue, record: &mut self.record, pauses: &pauses, terms, job, grant };
        let parts = Box::pin(run.parts(progress, work));
        let ended = match terms.heartbeat {
            false => pauses.run(Droppable::Section, parts).await.map(Some),
            true => {
                let beats = Box::pin(heartbeats(queue, job, terms));
                let first = pauses.run(Droppable::Renewed, select(parts, beats)).await;
                first.map(|first| match first {
                    Either::Left((ended, _)) => Some(ended),
                    Either::Right(((), _)) => None,
                })
            }
        };
        sometimes!(queue.runtime(), job_lost, matches!(ended, Some(None)));
        match ended {
            None => Fate::Left(Ending::Cancelled),
            Some(None) => Fate::Left(Ending::Lost),
            Some(Some(Ok(()))) => {
                self.finish(job).await;
                Fate::Done
            }
            Some(Some(Err(Stop::Work(error)))) => self.fail(job, error).await,
            Some(Some(Err(Stop::Record(error)))) => self.stop(job, &error).await,
        }
    }

    /// Removes a job that is done. If this fails, the job comes back, and the next worker finds it done.
    async fn finish(&self, job: &QueuedJob) {
        let _ = self.pauses.run(Droppable::Release, self.queue.finish(job, self.deadline())).await;
    }

    /// Gives a job back whose work has failed, or buries it after its last attempt.
    async fn fail(&self, job: &QueuedJob, error: String) -> Fate {
        let is_last = job.attempts >= self.terms.attempts_max;
        emit!(TaskEnded {
            key: self.queue.key().id_hash(),
            owner: job.owner.prefix(),
            token: job.token.as_u64(),
            task: job.id,
            outcome: if is_last { "dead" } else { "failed" },
        });
        if is_last {
            sometimes!(self.queue.runtime(), job_buried, true);
            let _ = self.queue.bury(job, &error, self.deadline()).await;
            return Fate::Dead(error);
        }
        let _ = self.queue.retry(job, self.pause_after(job), &error, self.deadline()).await;
        Fate::Failed(error)
    }

    /// Leaves a job whose claim or commit was not taken.
    async fn stop(&self, job: &QueuedJob, error: &JobRecordError<T::Error>) -> Fate {
        let ending = match error {
            JobRecordError::Refused(Refusal::Jump { .. }) => Ending::Jumped,
            JobRecordError::Refused(_) => Ending::Refused,
            JobRecordError::Corrupt(_) | JobRecordError::Failed(_) => Ending::Unanswered,
        };
        let seen = match error {
            JobRecordError::Refused(Refusal::Stale { seen, .. } | Refusal::ForeignOwner { seen, .. }) => {
                Some(*seen)
            }
            _ => None,
        };
        // If nobody has claimed the job since, it comes back soon; else nothing is changed.
        let is_ours = match seen {
            Some(seen) => self.queue.catch_up(job, seen, self.deadline()).await,
            None => self.queue.retry(job, self.pause_after(job), &error.to_string(), self.deadline()).await,
        };
        sometimes!(self.queue.runtime(), job_refused, seen.is_some());
        sometimes!(self.queue.runtime(), counter_caught_up, seen.is_some() && is_ours == Ok(true));
        Fate::Left(ending)
    }

    fn pause_after(&self, job: &QueuedJob) -> Duration {
        let retry = u32::try_from(job.attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        let mut random = [0; 8];
        self.queue.runtime().fill_random(&mut random);
        self.terms.backoff.wait(retry, random)
    }

    /// Pauses at a step on the queue or the resource with the hash `key`.
    async fn pause(&self, key: &str, step: Step) {
        step.emit(key);
        self.pauses.at(step).await;
    }

    fn deadline(&self) -> Instant {
        self.queue.runtime().now() + self.terms.answer_timeout
    }
}

probes! {
    /// A worker claimed a job that was done already.
    sometimes job_done_before;
    /// A worker learned by its heartbeat that its job is another's.
    sometimes job_lost;
    /// A job failed in its last attempt.
    sometimes job_buried;
    /// The resource refused the claim or the commit of a job.
    sometimes job_refused;
    /// The queue had lost its counter of tokens, and was told the highest one that the resource has seen.
    sometimes counter_caught_up;
}
