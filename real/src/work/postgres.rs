//! The rounds of contenders whose ticks and jobs are kept by PostgreSQL.

use std::time::Duration;

use dlock::{Elapsed, Instant, LockKey, Runtime, TokioRuntime, timeout_at};
use resource::fence::cron::{Grant, Seen, Tick, Ticks, TicksError};
use resource::fence::{PostgresTicks, WriteSeq};
use resource::jobs::{Part, PostgresJobs, Task, Worked};
use resource::postgres::{ConnectError, Connector};

use super::PlanError;
use super::contender::Contender;
use super::done::{Done, End};
use crate::task_rows::RowOf;

/// Returns a connector whose sessions end if they are silent for `timeout` within a transaction.
pub(super) fn connector(
    runtime: TokioRuntime,
    url: &str,
    timeout: Duration,
) -> Result<Connector<TokioRuntime>, ConnectError> {
    Ok(Connector::new(runtime, url)?.with_timeout(timeout))
}

impl<T: Fn(Done)> Contender<'_, T> {
    /// Claims a job of a queue on PostgreSQL in each round. Adds one before, unless the last round found one:
    /// then others may be left.
    pub(super) async fn work_on_postgres(&self) -> Result<(), PlanError> {
        let (plan, key) = (self.plan, self.key());
        let url = plan.postgres.as_ref().ok_or(PlanError::NoServers)?;
        let connector = connector(self.runtime.clone(), url, plan.acquire_timeout)?;
        let rows = RowOf(key.clone());
        let mut worker = PostgresJobs::new(connector, key.clone(), self.terms(), rows, self.pauses());
        let mut adds = true;
        let (runtime, name) = (&self.runtime, self.name.as_str());
        let work = |_: Task| async move {
            runtime.sleep_until(runtime.now() + plan.work).await;
            Ok(Part::Done(name.as_bytes().to_vec()))
        };
        self.repeat(async |_| {
            let round = async {
                if adds {
                    let added = worker.enqueue(b"work", Duration::ZERO).await;
                    added.map_err(|error| format!("a job may not have been added: {error}"))?;
                }
                worker.work(work).await.map_err(|error| error.to_string())
            };
            let worked = self.stop.or(round).await?;
            adds = !matches!(worked, Ok(Worked::Job { .. }));
            Some(worked.map_or_else(End::failed, End::of_job))
        })
        .await;
        Ok(())
    }
}

/// Why the record of ticks gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Failed(#[from] tokio_postgres::Error),
    #[error("no answer in time; check that it runs where --postgres says")]
    Timeout,
}

/// The record of ticks on PostgreSQL, each with a row. It keeps the deadlines, and opens another connection
/// after an error.
pub(super) struct LiveTicks {
    connector: Connector<TokioRuntime>,
    key: LockKey,
    ticks: Option<PostgresTicks<RowOf>>,
}

impl LiveTicks {
    /// Creates a record whose connection is opened by the first claim.
    pub(super) const fn new(connector: Connector<TokioRuntime>, key: LockKey) -> Self {
        Self { connector, key, ticks: None }
    }

    async fn open(&mut self) -> Result<&mut PostgresTicks<RowOf>, TicksError<NoAnswer>> {
        let ticks = match self.ticks.take() {
            Some(ticks) => ticks,
            None => {
                let client = self.connector.connect().await;
                let client = client.map_err(|error| TicksError::Failed(error.into()))?;
                PostgresTicks::new(client, RowOf(self.key.clone()))
            }
        };
        Ok(self.ticks.insert(ticks))
    }

    /// Returns the answer. Forgets the connection if there is none, since it may be broken.
    fn settle<T>(
        &mut self,
        answer: Result<Result<T, TicksError<NoAnswer>>, Elapsed>,
    ) -> Result<T, TicksError<NoAnswer>> {
        let answer = answer.unwrap_or(Err(TicksError::Failed(NoAnswer::Timeout)));
        if matches!(answer, Err(TicksError::Failed(_) | TicksError::Corrupt(_))) {
            self.ticks = None;
        }
        answer
    }
}

impl Ticks for LiveTicks {
    type Error = NoAnswer;

    async fn claim(&mut self, grant: &Grant, deadline: Instant) -> Result<Seen, TicksError<NoAnswer>> {
        let runtime = self.connector.runtime().clone();
        let claim = async { self.open().await?.claim(grant, deadline).await.map_err(no_answer) };
        let answer = timeout_at(&runtime, deadline, claim).await;
        self.settle(answer)
    }

    async fn commit(
        &mut self,
        grant: &Grant,
        number: WriteSeq,
        tick: Tick,
        result: &[u8],
        deadline: Instant,
    ) -> Result<(), TicksError<NoAnswer>> {
        let runtime = self.connector.runtime().clone();
        let commit = async {
            self.open().await?.commit(grant, number, tick, result, deadline).await.map_err(no_answer)
        };
        let answer = timeout_at(&runtime, deadline, commit).await;
        self.settle(answer)
    }
}

fn no_answer(error: TicksError<tokio_postgres::Error>) -> TicksError<NoAnswer> {
    match error {
        TicksError::Refused(refusal) => TicksError::Refused(refusal),
        TicksError::Done(tick) => TicksError::Done(tick),
        TicksError::Corrupt(problem) => TicksError::Corrupt(problem),
        TicksError::Failed(error) => TicksError::Failed(error.into()),
    }
}
