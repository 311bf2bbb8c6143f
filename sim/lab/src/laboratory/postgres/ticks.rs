//! The record of ticks in PostgreSQL: the library's, or without fencing the table of the effects alone.

use std::sync::{Arc, Mutex};

use dlock::Instant;
use resource::cron::PostgresTickRecord;
use resource::fence::cron::{Grant, Seen, Tick, Ticks, TicksError};
use resource::fence::{Fencing, JobStop, TickStatements, WriteSeq};
use resource::postgres::{PostgresError, PostgresSession};
use sim::Process;
use sim::clients::tokio_postgres::types::Type;
use sim::clients::tokio_postgres::{Client, Error, Transaction};
use sim::world::lock;
use sim::world::runtime::SimRuntime;

use super::{Connecting, Effect, failed};

/// Returns the last tick that has an effect, and the server's clock in milliseconds. $1 key.
const LAST: &str = "SELECT (SELECT max(task) FROM effect WHERE key = $1::text), \
                    (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The record of the ticks of a worker. Each tick inserts the row of its effect. A commit whose answer is
/// lost is not repeated: the next claim tells.
pub(crate) struct PostgresRecord {
    fencing: Fencing,
    /// The library's record.
    ticks: PostgresTickRecord<SimRuntime, Connecting, InsertEffect>,
    /// The connection in its place, without fencing.
    session: PostgresSession<SimRuntime, Connecting>,
    current: Current,
}

/// The grant and the number of the commit that runs: the statements insert them.
type Current = Arc<Mutex<Option<(Grant, WriteSeq)>>>;

impl PostgresRecord {
    /// Creates the record, which connects with its first claim.
    pub(crate) fn new(process: &Process, fencing: Fencing) -> Self {
        let (runtime, connect) = (process.runtime(), || Connecting::of(process));
        let current = Current::default();
        let insert = InsertEffect(Arc::clone(&current));
        let ticks = PostgresTickRecord::new(runtime.clone(), connect(), insert);
        Self { fencing, ticks, session: PostgresSession::new(runtime, connect()), current }
    }
}

impl Ticks for PostgresRecord {
    type Error = PostgresError;

    async fn claim(&mut self, grant: &Grant, deadline: Instant) -> Result<Seen, TicksError<PostgresError>> {
        if self.fencing == Fencing::Off {
            let key = grant.key.id_hash();
            let seen = self.session.run(deadline, move |client| last(client, key)).await;
            return seen.map_err(TicksError::Failed);
        }
        self.ticks.claim(grant, deadline).await
    }

    async fn commit(
        &mut self,
        grant: &Grant,
        number: WriteSeq,
        tick: Tick,
        result: &[u8],
        deadline: Instant,
    ) -> Result<(), TicksError<PostgresError>> {
        if self.fencing == Fencing::Off {
            let grant = grant.clone();
            let done = self.session.run(deadline, move |client| insert(client, grant, number, tick)).await;
            return done.map_err(TicksError::Failed);
        }
        *lock(&self.current) = Some((grant.clone(), number));
        self.ticks.commit(grant, number, tick, result, deadline).await
    }
}

/// Inserts the row of a tick's effect.
#[derive(Clone)]
struct InsertEffect(Current);

impl TickStatements for InsertEffect {
    async fn run(&mut self, transaction: &mut Transaction<'_>, tick: Tick, _: &[u8]) -> Result<(), Error> {
        let current = lock(&self.0).clone();
        match &current {
            Some((grant, number)) => effect(grant, *number, tick).insert(transaction).await,
            // A commit sets it first.
            None => Ok(()),
        }
    }
}

fn effect(grant: &Grant, seq: WriteSeq, tick: Tick) -> Effect<'_> {
    let Grant { key, token, owner } = grant;
    Effect { key, owner: owner.as_ref(), token: *token, seq, task: tick.as_u64() }
}

/// Reads the last tick that has an effect, and checks no token.
async fn last(client: Client, key: String) -> Result<(Client, Seen), JobStop<Error>> {
    let row = client.query_typed_opt(LAST, &[(&key, Type::TEXT)]).await.map_err(failed)?;
    let Some(row) = row else { return Ok((client, Seen::default())) };
    let (last, now): (Option<i64>, i64) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    let last = last.and_then(|tick| u64::try_from(tick).ok()).map(Tick::new);
    Ok((client, Seen { last, now_ms: u64::try_from(now).ok() }))
}

/// Commits the effect of a tick, and checks no token.
async fn insert(
    mut client: Client,
    grant: Grant,
    number: WriteSeq,
    tick: Tick,
) -> Result<(Client, ()), JobStop<Error>> {
    let mut transaction = client.transaction().await.map_err(failed)?;
    effect(&grant, number, tick).insert(&mut transaction).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok((client, ()))
}
