//! A contender: its rounds, until it is asked to stop.

use std::pin::pin;
use std::time::Duration;

use dlock::election::Election;
use dlock::{AcquireError, AnyBackend, Backend, Lock, LockKey, Options, Runtime, TokioRuntime};
use futures_util::future::select;
use resource::worker::{Job, Reading, Round, RoundError, Worker};

use super::{Done, Plan, PlanError};
use crate::pause::Stoppable;
use crate::primitive::Primitive;
use crate::stop::Stop;

/// The shortest rest after a refusal by a full queue: the next round would be refused at once, too.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// The number of request timeouts for which a contender that stops waits for its releases.
const SETTLE_TIMEOUTS: u32 = 3;

/// A contender of a plan.
pub(super) struct Contender<'a, T> {
    pub(super) plan: &'a Plan,
    pub(super) name: String,
    /// The key of its lock.
    pub(super) key: LockKey,
    pub(super) stop: &'a Stop,
    pub(super) on_round: &'a T,
}

impl<T: Fn(Done)> Contender<'_, T> {
    /// Runs all its rounds.
    pub(super) async fn run(self, backend: AnyBackend<TokioRuntime>) -> Result<(), PlanError> {
        let Self { plan, name, key, stop, on_round } = self;
        let runtime = backend.runtime().clone();
        let client = plan.client(runtime.clone());
        let mut options = Options::new(plan.ttl);
        options.instance = Some(name.clone());
        plan.primitive.apply(&mut options);
        let request_timeout = options.request_timeout;
        let lock = Lock::new(backend, options)?;
        let pauses = Stoppable { pause: plan.pause, stop: stop.clone() };
        let worker = Worker::new(lock.clone(), client, pauses);
        let observed = job(plan, key.clone());
        let mut job = observed.clone();
        let election = match plan.primitive {
            Primitive::Election => Some(worker.election(&job)?),
            _ => None,
        };
        let rounds = async {
            for round in 0..plan.rounds {
                job.shared = plan.primitive.reads(round);
                // Asked to stop, it drops an acquire, which then releases in the background; once it holds
                // the lock it drops the section, and releases.
                let Some(round) = one_round(&worker, election.as_ref(), &job, stop).await else { break };
                let refused = matches!(round, Err(RoundError::Acquire(AcquireError::QueueFull { .. })));
                let rest = if refused { plan.rest.max(AFTER_REFUSAL) } else { plan.rest };
                on_round(Done { contender: name.clone(), key: key.name().to_owned(), round });
                if !rest.is_zero() {
                    stop.or(runtime.sleep_until(runtime.now() + rest)).await;
                }
                if stop.is_asked() {
                    break;
                }
            }
        };
        match &election {
            None => rounds.await,
            // Each candidate observes as well.
            Some(election) => {
                select(pin!(rounds), pin!(observe(&worker, election, &observed))).await;
            }
        }
        // Background releases end with this runtime: wait for them.
        let timeouts = if stop.is_asked() { SETTLE_TIMEOUTS } else { 1 };
        lock.cleaned_up(runtime.now() + request_timeout * timeouts).await;
        Ok(())
    }
}

/// Acquires and works once, as the leader if there is an election; returns `None` if asked to stop first.
async fn one_round(
    worker: &Worker<AnyBackend<TokioRuntime>, Stoppable>,
    election: Option<&Election<AnyBackend<TokioRuntime>>>,
    job: &Job,
    stop: &Stop,
) -> Option<Result<Round, RoundError>> {
    let Some(election) = election else {
        return Some(match stop.or(worker.acquire(job)).await? {
            Ok(handle) => worker.hold(job, handle).await,
            Err(error) => Err(error.into()),
        });
    };
    Some(match stop.or(worker.campaign(election, job)).await? {
        Ok(leadership) => worker.lead(job, leadership).await,
        Err(error) => Err(error.into()),
    })
}

/// Observes until it is dropped, and records each term that it sees.
async fn observe(
    worker: &Worker<AnyBackend<TokioRuntime>, Stoppable>,
    election: &Election<AnyBackend<TokioRuntime>>,
    job: &Job,
) {
    let mut observer = election.observe();
    // An error that no repetition changes ends the campaigns, too, which report it.
    while worker.observe(&mut observer, job, dlock::Instant::MAX).await.is_ok() {}
    std::future::pending::<()>().await;
}

fn job(plan: &Plan, key: LockKey) -> Job {
    let mut job = Job::new(key, plan.work);
    job.acquire_timeout = plan.acquire_timeout;
    job.check = plan.check;
    job.renew = plan.renew;
    job.reading = if plan.claim { Reading::Fenced } else { Reading::None };
    job
}
