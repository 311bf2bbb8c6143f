//! The ticks of a cron in PostgreSQL, over a connection that is opened when it is needed.

use dlock::{Elapsed, Instant, Runtime, timeout_at};
use tokio_postgres::Error;

use crate::fence::cron::{Grant, Seen, Tick, Ticks, TicksError};
use crate::fence::{PostgresTicks, TickStatements, WriteSeq};
use crate::postgres::{ConnectPostgres, PostgresError, PostgresSession};

/// The record of ticks in PostgreSQL, [`PostgresTicks`], with deadlines. It opens a connection with its first
/// claim, and another one after a step without an answer. A commit whose answer is lost is not repeated: the
/// next claim tells.
pub struct PostgresTickRecord<R, C, S> {
    session: PostgresSession<R, C>,
    statements: S,
    /// The record on its connection; `None` if it has none.
    ticks: Option<PostgresTicks<S>>,
}

impl<R: Runtime, C: ConnectPostgres, S: TickStatements + Clone> PostgresTickRecord<R, C, S> {
    /// Creates a record without a connection. Each connection has a clone of `statements`.
    pub const fn new(runtime: R, connect: C, statements: S) -> Self {
        Self { session: PostgresSession::new(runtime, connect), statements, ticks: None }
    }

    /// Takes the record on its connection, or opens one. A step that is dropped takes it along: its
    /// connection may be in the middle of a transaction.
    async fn open(&mut self, deadline: Instant) -> Result<PostgresTicks<S>, TicksError<PostgresError>> {
        match self.ticks.take().filter(|ticks| !ticks.is_closed()) {
            Some(ticks) => Ok(ticks),
            None => {
                let client = self.session.open(deadline).await.map_err(TicksError::Failed)?;
                Ok(PostgresTicks::new(client, self.statements.clone()))
            }
        }
    }

    /// Returns the answer to a step. Keeps the connection for the next one, unless it may be broken.
    fn settle<T>(
        &mut self,
        ticks: PostgresTicks<S>,
        answer: Result<Result<T, TicksError<Error>>, Elapsed>,
    ) -> Result<T, TicksError<PostgresError>> {
        let answer = answer.map_err(|_| TicksError::Failed(PostgresError::NoAnswer))?;
        if !matches!(answer, Err(TicksError::Failed(_))) {
            self.ticks = Some(ticks);
        }
        answer.map_err(|error| match error {
            TicksError::Refused(refusal) => TicksError::Refused(refusal),
            TicksError::Done(tick) => TicksError::Done(tick),
            TicksError::Corrupt(problem) => TicksError::Corrupt(problem),
            TicksError::Failed(error) => TicksError::Failed(error.into()),
        })
    }
}

impl<R: Runtime, C: ConnectPostgres, S: TickStatements + Clone> Ticks for PostgresTickRecord<R, C, S> {
    type Error = PostgresError;

    async fn claim(&mut self, grant: &Grant, deadline: Instant) -> Result<Seen, TicksError<PostgresError>> {
        let mut ticks = self.open(deadline).await?;
        let answer = timeout_at(self.session.runtime(), deadline, ticks.claim(grant, deadline)).await;
        self.settle(ticks, answer)
    }

    async fn commit(
        &mut self,
        grant: &Grant,
        number: WriteSeq,
        tick: Tick,
        result: &[u8],
        deadline: Instant,
    ) -> Result<(), TicksError<PostgresError>> {
        let mut ticks = self.open(deadline).await?;
        let commit = ticks.commit(grant, number, tick, result, deadline);
        let answer = timeout_at(self.session.runtime(), deadline, commit).await;
        self.settle(ticks, answer)
    }
}
