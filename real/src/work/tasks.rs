//! The rounds of contenders whose work is a task: a result to compute, a tick of a cron, a job of a queue.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dlock::flight::{Flight, FlightError, Fresh, Results, SingleFlight};
use dlock::queue::Jobs;
use dlock::redis::{Queue, Redis};
use dlock::tls::Tls;
use dlock::{AnyBackend, Backoff, Cap, ConnectError, FencingToken, Lock, Runtime, TokioRuntime};
use history::emit;
use resource::cron::{Cron, PostgresTickRecord, ResourceTicks, Runner};
use resource::fence::cron::{Every, Missed, Policy, Tick, Ticks};
use resource::flight::ResourceResults;
use resource::jobs::{
    JobRecord, JobWorker, Part, PostgresJobRecord, PostgresJobs, ResourceJobs, Task, Terms, Worked, enqueue,
};
use resource::worker::{Pauses, Step};

use super::PlanError;
use super::connector::{Connector, UrlError};
use super::contender::Contender;
use super::done::{Done, End};
use crate::systems::SystemError;
use crate::task_rows::RowOf;

/// The longest time for which a flight renews its lease, if the plan sets none.
const LONGEST: Cap = Cap(Duration::from_secs(3600));

impl<T: Fn(Done)> Contender<'_, T> {
    /// Gets a result that is newer than the one which is stored, in each round.
    pub(super) async fn fly(&self, lock: &Lock<AnyBackend<TokioRuntime>>) -> Result<(), PlanError> {
        let results = ResourceResults::new(self.runtime.clone(), self.plan.client(self.runtime.clone()));
        let cap = self.plan.renew.map_or(LONGEST, Cap);
        let flight = SingleFlight::new(lock.clone(), results.clone(), cap)?;
        let compute = async |token: FencingToken| {
            emit!(ComputationStarted { key: self.key().id_hash(), token: token.as_u64() });
            self.runtime.sleep_until(self.runtime.now() + self.plan.work).await;
            self.pauses().at(Step::Worked).await;
            Ok::<_, String>(format!("{} {token}", self.name).into_bytes())
        };
        let round = async || {
            let deadline = self.runtime.now() + self.plan.acquire_timeout;
            let known = results.get(self.key(), deadline).await.map_err(FlightError::Store)?;
            let known = known.map(|result| result.token);
            emit!(FlightStarted { key: self.key().id_hash(), above: known.map_or(0, FencingToken::as_u64) });
            let fresh = known.map_or(Fresh::Any, Fresh::Above);
            let flown = flight.run(self.key(), fresh, deadline, compute).await;
            if let Ok(Flight { result, .. }) = &flown {
                emit!(ResultReturned { key: self.key().id_hash(), token: result.token.as_u64() });
            }
            flown
        };
        self.repeat(async |_| Some(End::of_flight(self.stop.or(round()).await?))).await;
        Ok(())
    }

    /// Fires at each tick, by this machine's clock.
    pub(super) async fn fire(
        &self,
        lock: &Lock<AnyBackend<TokioRuntime>>,
        every: Duration,
    ) -> Result<(), PlanError> {
        match &self.plan.postgres {
            None => {
                self.fire_on(lock, ResourceTicks::new(self.plan.client(self.runtime.clone())), every).await
            }
            Some(url) => {
                let (runtime, rows) = (self.runtime.clone(), RowOf(self.key().clone()));
                let ticks = PostgresTickRecord::new(runtime, self.connector(url)?, rows);
                self.fire_on(lock, ticks, every).await
            }
        }
    }

    async fn fire_on<R: Ticks>(
        &self,
        lock: &Lock<AnyBackend<TokioRuntime>>,
        ticks: R,
        every: Duration,
    ) -> Result<(), PlanError> {
        let plan = self.plan;
        let policy = Policy { late_max: every, missed: Missed::Latest };
        let mut cron = Cron::new(self.key().clone(), Every::new(every, Duration::ZERO)?, policy);
        (cron.acquire_timeout, cron.answer_timeout) = (plan.acquire_timeout, plan.acquire_timeout);
        (cron.renew, cron.check) = (plan.renew, plan.check);
        let mut runner = Runner::new(lock.clone(), ticks, cron, self.pauses());
        let (runtime, name) = (&self.runtime, self.name.as_str());
        let work = |tick: Tick| async move {
            runtime.sleep_until(runtime.now() + plan.work).await;
            format!("by {name} at {tick}").into_bytes()
        };
        self.repeat(async |_| {
            self.stop.or(runner.next(unix_ms)).await?;
            Some(match self.stop.or(runner.acquire()).await? {
                Ok(handle) => match runner.run(handle, unix_ms, work).await {
                    Ok(fired) => End::of_firing(fired),
                    Err(error) => End::failed(error),
                },
                Err(error) => End::of_acquire(&error),
            })
        })
        .await;
        Ok(())
    }

    /// Works on the jobs of a queue on Redis.
    pub(super) async fn work_jobs(&self) -> Result<(), PlanError> {
        let runtime = self.runtime.clone();
        let place = self.plan.place.as_ref().ok_or(PlanError::NoServers)?;
        match place.connector().map_err(|error| SystemError::from(ConnectError::from(error)))? {
            None => self.work_on_redis(place.redis(runtime)?).await,
            Some(tls) => self.work_on_redis(place.redis(Tls::new(runtime, tls))?).await,
        }
        Ok(())
    }

    async fn work_on_redis<R: Runtime>(&self, redis: Redis<R>) {
        let queue = Queue::new(redis, self.key().clone());
        self.work_on(queue, ResourceJobs::new(self.plan.client(self.runtime.clone()))).await;
    }

    /// Works on the jobs of a queue on PostgreSQL, whose table is the record of its jobs, too.
    pub(super) async fn work_on_postgres(&self) -> Result<(), PlanError> {
        let url = self.plan.postgres.as_ref().ok_or(PlanError::NoServers)?;
        let (connector, runtime, key) = (self.connector(url)?, self.runtime.clone(), self.key().clone());
        let queue = PostgresJobs::new(key.clone(), runtime.clone(), connector.clone());
        let record = PostgresJobRecord::new(runtime, connector, self.plan.ttl, RowOf(key));
        self.work_on(queue, record).await;
        Ok(())
    }

    /// Returns a connector whose sessions end if they are silent within a transaction.
    fn connector(&self, url: &str) -> Result<Connector, UrlError> {
        Ok(Connector::new(self.runtime.clone(), url)?.with_timeout(self.plan.acquire_timeout))
    }

    /// Claims a job a round. Adds one before, unless the last round found one: then others may be left.
    async fn work_on<Q: Jobs, S: JobRecord>(&self, queue: Q, record: S) {
        let mut worker = JobWorker::new(queue, record, self.terms(), self.pauses());
        let mut adds = true;
        let (runtime, plan, name) = (&self.runtime, self.plan, self.name.as_str());
        let work = |_: Task| async move {
            runtime.sleep_until(runtime.now() + plan.work).await;
            Ok(Part::Done(name.as_bytes().to_vec()))
        };
        self.repeat(async |_| {
            let round = async {
                if adds {
                    add(worker.queue(), self.plan.acquire_timeout).await?;
                }
                worker.work(work).await.map_err(|error| error.to_string())
            };
            let worked = self.stop.or(round).await?;
            adds = !matches!(worked, Ok(Worked::Job { .. }));
            Some(worked.map_or_else(End::failed, End::of_job))
        })
        .await;
    }

    fn terms(&self) -> Terms {
        Terms {
            lease: self.plan.ttl,
            heartbeat: self.plan.renew.is_some(),
            backoff: Backoff { base: self.plan.work, max: self.plan.ttl },
            answer_timeout: self.plan.acquire_timeout,
            instance: Some(self.name.clone()),
            ..Terms::default()
        }
    }
}

/// Adds a job of a number that no other has: the microseconds of Unix time. Of two contenders that add one in
/// the same microsecond, only one does; on PostgreSQL also if their queues differ, which fails one's round.
async fn add<Q: Jobs>(queue: &Q, timeout: Duration) -> Result<(), String> {
    let deadline = queue.runtime().now() + timeout;
    let added = enqueue(queue, unix_micros(), b"work", Duration::ZERO, deadline).await;
    added.map(drop).map_err(|error| format!("a job may not have been added: {error}"))
}

/// Returns this machine's clock, in microseconds of Unix time.
pub(crate) fn unix_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Returns this machine's clock, in milliseconds of Unix time.
pub(crate) fn unix_ms() -> u64 {
    unix_micros() / 1000
}
