//! Attempts whose work is a task: a result that they want, a cron that they fire, or a job that they add to a
//! queue and claim. A resource in this process's memory keeps the results, the ticks and the jobs, so that
//! the attempts wait for the lock servers alone.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dlock::flight::{Flight, FlightError, Fresh, SingleFlight};
use dlock::queue::Claimed;
use dlock::redis::{Queue, Redis};
use dlock::{
    AcquireError, Backend, BackendError, Cap, FencingToken, KeyError, Lock, LockKey, Options, Released,
    Runtime, TokioRuntime,
};
use history::emit;
use resource::client::Client;
use resource::cron::{Cron, ResourceTicks, Runner};
use resource::fence::cron::{Every, Missed, Policy, Tick};
use resource::flight::{ResourceResults, ResultsError};
use resource::http::{App, Config};
use resource::jobs::{Fate, JobWorker, Part, ResourceJobs, Task, Terms, WorkError, enqueue};
use resource::store::MemoryStore;
use resource::worker::Ending;

use super::book::{Attempt, Book, Unserved};
use super::held::NotHeld;
use super::{Load, LoadError};
use crate::serve::{listen, serve_resource};
use crate::timer;
use crate::work::unix_ms;

/// The timeout of an answer of the resource, which is in this process.
const ANSWER: Duration = Duration::from_secs(30);

/// The pause before another look at a queue that has no job which is ready.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Starts a resource of this process, in memory; returns its address.
pub(super) async fn own_resource(runtime: &TokioRuntime) -> Result<String, LoadError> {
    let listener = listen("127.0.0.1:0").await.map_err(LoadError::Resource)?;
    let address = listener.local_addr().map_err(LoadError::Resource)?.to_string();
    let app = App::new(Arc::new(MemoryStore::new()), Config::default());
    runtime.spawn(serve_resource(listener, app, None, None));
    Ok(address)
}

/// A contender.
pub(super) struct Tasks {
    pub(super) book: Arc<Book>,
    pub(super) runtime: TokioRuntime,
    /// The address of the resource.
    pub(super) resource: String,
}

impl Tasks {
    fn load(&self) -> &Load {
        &self.book.offer.load
    }

    fn client(&self) -> Client<TokioRuntime> {
        Client::new(self.runtime.clone(), &self.resource)
    }

    fn key(&self, attempt: Attempt) -> Result<LockKey, KeyError> {
        let load = self.load();
        LockKey::new(&load.key, &(attempt.number % load.keys).to_string())
    }

    async fn work(&self) {
        let (work, pause) = (self.load().work, self.load().pause);
        self.book.or_stop(&self.runtime, timer::sleep(work + pause)).await;
    }

    /// Returns the next attempt when it is due.
    async fn next(&self) -> Option<Attempt> {
        loop {
            let attempt = self.book.next(&self.runtime).await?;
            let now = self.runtime.now();
            if now < self.book.deadline(attempt) {
                return Some(attempt);
            }
            self.book.given_up(attempt, now);
        }
    }

    /// Waits for what an attempt wants; notes whether it was served.
    async fn served<T>(
        &self,
        attempt: Attempt,
        wanted: impl Future<Output = Result<T, NotHeld>>,
    ) -> Option<T> {
        let (called, deadline) = (self.runtime.now(), self.book.deadline(attempt));
        let outcome = self.book.or_stop(&self.runtime, wanted).await;
        let now = self.runtime.now();
        match outcome {
            None => self.book.given_up(attempt, now),
            Some(Ok(task)) => {
                self.book.granted(attempt, now, called);
                return Some(task);
            }
            // The store of results has the same deadline.
            Some(Err(error)) if error.source.is_none() && now >= deadline => self.book.given_up(attempt, now),
            Some(Err(error)) => {
                let request_timeout = Options::new(self.load().ttl).request_timeout;
                self.book.not_served(&Unserved { attempt, called, deadline, error }, now, request_timeout);
            }
        }
        None
    }

    /// Gets a result for each attempt that is newer than the one stored when it asks.
    pub(super) async fn fly<B: Backend>(self, lock: Lock<B>) -> Result<(), LoadError> {
        let results = ResourceResults::new(self.runtime.clone(), self.client());
        let flight = SingleFlight::new(lock, results, Cap(self.load().lasts + ANSWER))?;
        while let Some(attempt) = self.next().await {
            let (deadline, key) = (self.book.deadline(attempt), self.key(attempt)?);
            let compute = async |token: FencingToken| {
                emit!(ComputationStarted { key: key.id_hash(), token: token.as_u64() });
                self.work().await;
                Ok::<_, String>(attempt.number.to_string().into_bytes())
            };
            // The audit judges one call of a process at a time, so this load records no calls.
            let flown = async { Ok(flight.run(&key, Fresh::SinceCall, deadline, compute).await?) };
            if let Some(Flight { is_shared, .. }) = self.served(attempt, flown).await {
                self.book.task_ended(is_shared, false);
            }
        }
        Ok(())
    }

    /// Fires a cron for each attempt: it waits for the lock, and runs the ticks that are due.
    pub(super) async fn fire<B: Backend>(self, lock: Lock<B>, every: Duration) -> Result<(), LoadError> {
        let schedule = Every::new(every, Duration::ZERO)?;
        let policy = Policy { late_max: every, missed: Missed::Latest };
        while let Some(attempt) = self.next().await {
            let (deadline, key) = (self.book.deadline(attempt), self.key(attempt)?);
            let granted = async { Ok(lock.acquire(&key, deadline).await?) };
            let Some(handle) = self.served(attempt, granted).await else { continue };
            let cron = Cron { answer_timeout: ANSWER, ..Cron::new(key, schedule, policy) };
            let mut runner = Runner::new(lock.clone(), ResourceTicks::new(self.client()), cron, ());
            let work = |_: Tick| async {
                self.work().await;
                attempt.number.to_string().into_bytes()
            };
            let fired = runner.run(handle, unix_ms, work).await?;
            let is_lost =
                fired.ending != Ending::Done || matches!(fired.released, Some(Ok(Released::NotOwner)));
            self.book.task_ended(fired.ran.is_empty(), is_lost);
        }
        Ok(())
    }

    /// Adds a job to a queue on Redis for each attempt, and claims one: perhaps that of another attempt,
    /// which then gets this one's. Jobs have numbers from `first` on.
    pub(super) async fn work_jobs<R: Runtime>(self, redis: Redis<R>, first: u64) -> Result<(), LoadError> {
        let lease = self.load().ttl;
        let terms = Terms { lease, heartbeat: false, answer_timeout: ANSWER, ..Terms::default() };
        while let Some(attempt) = self.next().await {
            let (deadline, key) = (self.book.deadline(attempt), self.key(attempt)?);
            let (queue, record) = (Queue::new(redis.clone(), key), ResourceJobs::new(self.client()));
            let mut worker = JobWorker::new(queue, record, terms.clone(), ());
            let claimed = async {
                enqueue(worker.queue(), first + attempt.number, b"work", Duration::ZERO, deadline).await?;
                while self.runtime.now() < deadline {
                    if let Claimed::Job(job) = worker.claim().await? {
                        return Ok(job);
                    }
                    // Rare: a job whose lease had ended was claimed beside those of all attempts.
                    self.runtime.sleep_until(self.runtime.now() + LOOK_AGAIN).await;
                }
                Err(AcquireError::DeadlinePassed.into())
            };
            let Some(job) = self.served(attempt, claimed).await else { continue };
            let work = |_: Task| async {
                self.work().await;
                Ok(Part::Done(attempt.number.to_string().into_bytes()))
            };
            let fate = worker.run(&job, work).await?;
            self.book.task_ended(false, !matches!(fate, Fate::Done | Fate::DoneBefore));
        }
        Ok(())
    }
}

impl From<FlightError<ResultsError>> for NotHeld {
    fn from(error: FlightError<ResultsError>) -> Self {
        match error {
            FlightError::Acquire(source) => source.into(),
            error => Self { words: error.to_string(), source: None },
        }
    }
}

impl From<BackendError> for NotHeld {
    fn from(error: BackendError) -> Self {
        AcquireError::Unavailable(error).into()
    }
}

impl From<WorkError> for NotHeld {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::Queue(error) => error.into(),
            error => Self { words: error.to_string(), source: None },
        }
    }
}
