//! The record of ticks on PostgreSQL, through tokio-postgres.

use std::future::Future;

use dlock::Instant;
use tokio_postgres::{Client, Error, Transaction};

use super::ticks::seen_ticks;
use super::{Entry, Stop, claim_ticks, finish_tick};
use crate::WriteSeq;
use crate::cron::{Grant, Seen, Tick, Ticks, TicksError};

/// Fails if a statement of the transaction has failed. Its commit would not: PostgreSQL answers that by a
/// rollback, which the client takes for a success.
const STANDS: &str = "SELECT 1";

/// The statements that a tick commits.
pub trait TickStatements: Send + Sync {
    /// Runs the statements of the tick in `transaction`, with the result of its work.
    ///
    /// # Errors
    ///
    /// The client's error: the transaction is rolled back, and the tick is not done. So it is if a statement
    /// has failed and its error is not returned.
    fn run(
        &mut self,
        transaction: &mut Transaction<'_>,
        tick: Tick,
        result: &[u8],
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// The record of ticks in the table `cron_tick`: each tick becomes done in the transaction of its statements.
/// The server's clock decides which ticks are due.
///
/// The deadlines of claims and commits are not applied: set `statement_timeout` on the connection.
#[derive(Debug)]
pub struct PostgresTicks<S> {
    client: Client,
    statements: S,
}

impl<S: TickStatements> PostgresTicks<S> {
    /// Creates the record on a connection of its own. [`migrate`](crate::migrate) creates its table.
    pub const fn new(client: Client, statements: S) -> Self {
        Self { client, statements }
    }

    /// Returns whether the connection is closed: each further step fails.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    async fn try_claim(&mut self, entry: Entry, grant: &Grant) -> Result<Seen, Stop<Error>> {
        let mut transaction = self.client.transaction().await?;
        match claim_ticks(&mut transaction, &grant.key, entry).await {
            // The answer to this very claim was lost. It stands, and nothing has followed it.
            Err(Stop::Repeated(_)) => drop(transaction),
            claimed => {
                let seen = claimed?;
                transaction.commit().await?;
                return Ok(seen);
            }
        }
        seen_ticks(&mut self.client.transaction().await?, &grant.key).await
    }

    async fn try_commit(
        &mut self,
        entry: Entry,
        grant: &Grant,
        tick: Tick,
        result: &[u8],
    ) -> Result<(), Stop<Error>> {
        let mut transaction = self.client.transaction().await?;
        finish_tick(&mut transaction, &grant.key, entry, tick).await?;
        self.statements.run(&mut transaction, tick, result).await?;
        transaction.batch_execute(STANDS).await?;
        Ok(transaction.commit().await?)
    }
}

impl<S: TickStatements> Ticks for PostgresTicks<S> {
    type Error = Error;

    async fn claim(&mut self, grant: &Grant, _: Instant) -> Result<Seen, TicksError<Error>> {
        let claimed = self.try_claim(entry(grant, 1, "claim".into()), grant).await;
        claimed.map_err(|stop| not_done(stop, None))
    }

    async fn commit(
        &mut self,
        grant: &Grant,
        number: WriteSeq,
        tick: Tick,
        result: &[u8],
        _: Instant,
    ) -> Result<(), TicksError<Error>> {
        // The claim is number 1.
        let entry = entry(grant, number.as_u64().saturating_add(1), tick.as_u64().into());
        let committed = self.try_commit(entry, grant, tick, result).await;
        committed.map_err(|stop| not_done(stop, Some(tick)))
    }
}

/// Returns the entry of a claim or a commit, which names the tick.
fn entry(grant: &Grant, number: u64, tick: serde_json::Value) -> Entry {
    let entry = Entry::new(grant.token).payload(serde_json::json!({ "tick": tick }));
    let entry = grant.owner.iter().fold(entry, Entry::owner);
    WriteSeq::new(number).into_iter().fold(entry, Entry::seq)
}

fn not_done(stop: Stop<Error>, tick: Option<Tick>) -> TicksError<Error> {
    match (stop, tick) {
        (Stop::Refused(refusal), _) => TicksError::Refused(refusal),
        (Stop::Repeated(_), Some(tick)) => TicksError::Done(tick),
        (Stop::Retry(error) | Stop::Failed(error), _) => TicksError::Failed(error),
        (stop @ (Stop::Repeated(_) | Stop::TooLarge(_) | Stop::Corrupt(_)), _) => {
            TicksError::Corrupt(stop.to_string())
        }
    }
}
