//! A contender: its rounds, until it is asked to stop. A round then drops its acquire, which releases in the
//! background; once it holds the lock it drops its section, and releases.

use std::pin::pin;
use std::time::Duration;

use dlock::election::Election;
use dlock::{AnyBackend, Lock, LockKey, Options, Runtime, TokioRuntime};
use futures_util::future::select;
use resource::worker::{Job, Reading, Worker};

use super::done::{Done, End};
use super::{Plan, PlanError};
use crate::pause::Stoppable;
use crate::primitive::Primitive;
use crate::stop::Stop;

/// The shortest rest after a refusal by a full queue: the next round would be refused at once, too.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// The number of request timeouts for which a contender that stops waits for its releases.
const SETTLE_TIMEOUTS: u32 = 3;

/// A worker on live servers.
type LiveWorker = Worker<AnyBackend<TokioRuntime>, Stoppable>;

/// A contender of a plan.
pub(super) struct Contender<'a, T> {
    pub(super) plan: &'a Plan,
    pub(super) name: String,
    /// The keys of its locks: one, unless it locks several at once.
    pub(super) keys: Vec<LockKey>,
    pub(super) stop: &'a Stop,
    pub(super) on_round: &'a T,
    pub(super) runtime: TokioRuntime,
}

impl<T: Fn(Done)> Contender<'_, T> {
    /// Runs all its rounds on `backend`.
    pub(super) async fn run(self, backend: AnyBackend<TokioRuntime>) -> Result<(), PlanError> {
        let mut options = Options::new(self.plan.ttl);
        options.instance = Some(self.name.clone());
        self.plan.primitive.apply(&mut options);
        let request_timeout = options.request_timeout;
        let lock = Lock::new(backend, options)?;
        self.all_rounds(&lock).await?;
        // Background releases end with this runtime: wait for them.
        let timeouts = if self.stop.is_asked() { SETTLE_TIMEOUTS } else { 1 };
        lock.cleaned_up(self.runtime.now() + request_timeout * timeouts).await;
        Ok(())
    }

    async fn all_rounds(&self, lock: &Lock<AnyBackend<TokioRuntime>>) -> Result<(), PlanError> {
        let client = self.plan.client(self.runtime.clone());
        let worker = Worker::new(lock.clone(), client, self.pauses());
        match self.plan.primitive {
            Primitive::Mutex | Primitive::Bounded { .. } | Primitive::Semaphore { .. } => {
                let job = self.job();
                self.repeat(async |_| self.locked(&worker, &job).await).await;
            }
            Primitive::Readers => {
                let [writer, reader] = [false, true].map(|shared| Job { shared, ..self.job() });
                let job = |round| if self.plan.primitive.reads(round) { &reader } else { &writer };
                self.repeat(async |round| self.locked(&worker, job(round)).await).await;
            }
            Primitive::Several { .. } => {
                let job = self.job();
                self.repeat(async |_| self.several(&worker, &job).await).await;
            }
            Primitive::Reentrant { depth } => {
                let job = self.job();
                self.repeat(async |_| self.nested(&worker, &job, depth).await).await;
            }
            Primitive::Election => {
                let job = self.job();
                let election = worker.election(&job)?;
                let rounds = self.repeat(async |_| self.lead(&worker, &election, &job).await);
                // Each candidate observes as well.
                select(pin!(rounds), pin!(observe(&worker, &election, &job))).await;
            }
            Primitive::SingleFlight => self.fly(lock).await?,
            Primitive::Cron { every } => self.fire(lock, every).await?,
            Primitive::Jobs => self.work_jobs().await?,
        }
        Ok(())
    }

    /// Runs `round` with the number of each round, and reports on it, until it is asked to stop: then `round`
    /// returns `None`.
    pub(super) async fn repeat(&self, mut round: impl AsyncFnMut(u64) -> Option<End>) {
        let names: Vec<_> = self.keys.iter().map(LockKey::name).collect();
        for number in 0..self.plan.rounds {
            let Some(End { token, words, has_failed, is_refused }) = round(number).await else { break };
            let (contender, key) = (self.name.clone(), names.join(", "));
            (self.on_round)(Done { contender, key, token, words, has_failed });
            let rest = if is_refused { self.plan.rest.max(AFTER_REFUSAL) } else { self.plan.rest };
            if !rest.is_zero() {
                self.stop.or(self.runtime.sleep_until(self.runtime.now() + rest)).await;
            }
            if self.stop.is_asked() {
                break;
            }
        }
    }

    async fn locked(&self, worker: &LiveWorker, job: &Job) -> Option<End> {
        Some(match self.stop.or(worker.acquire(job)).await? {
            Ok(handle) => End::of_round(worker.hold(job, handle).await),
            Err(error) => End::of_acquire(&error),
        })
    }

    async fn several(&self, worker: &LiveWorker, job: &Job) -> Option<End> {
        Some(match self.stop.or(worker.acquire_all(&self.keys, job)).await? {
            Ok(handles) => End::of_several(worker.hold_all(job, handles).await),
            Err(error) => End::of_acquire_all(&error),
        })
    }

    async fn nested(&self, worker: &LiveWorker, job: &Job, depth: u32) -> Option<End> {
        let scope = worker.scope();
        Some(match self.stop.or(worker.enter(&scope, job)).await? {
            Ok(entered) => End::of_nested(worker.hold_nested(job, depth, &scope, entered).await),
            Err(error) => End::failed(error),
        })
    }

    async fn lead(
        &self,
        worker: &LiveWorker,
        election: &Election<AnyBackend<TokioRuntime>>,
        job: &Job,
    ) -> Option<End> {
        Some(match self.stop.or(worker.campaign(election, job)).await? {
            Ok(leadership) => End::of_round(worker.lead(job, leadership).await),
            Err(error) => End::of_acquire(&error),
        })
    }

    /// Returns the first of its keys.
    pub(super) fn key(&self) -> &LockKey {
        &self.keys[0]
    }

    pub(super) fn pauses(&self) -> Stoppable {
        Stoppable { pause: self.plan.pause, stop: self.stop.clone() }
    }

    fn job(&self) -> Job {
        let plan = self.plan;
        let mut job = Job::new(self.key().clone(), plan.work);
        job.acquire_timeout = plan.acquire_timeout;
        job.check = plan.check;
        job.renew = plan.renew;
        job.reading = if plan.claim { Reading::Fenced } else { Reading::None };
        job
    }
}

/// Observes until it is dropped, and records each term that it sees.
async fn observe(worker: &LiveWorker, election: &Election<AnyBackend<TokioRuntime>>, job: &Job) {
    let mut observer = election.observe();
    // An error that no repetition changes ends the campaigns, too, which report it.
    while worker.observe(&mut observer, job, dlock::Instant::MAX).await.is_ok() {}
    std::future::pending::<()>().await;
}
