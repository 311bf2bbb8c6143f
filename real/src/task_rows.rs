//! The rows that ticks and jobs write on PostgreSQL, each in the transaction that makes its task done: what a
//! task takes effect as. A table keeps all of them, with the token of the writer, so that a run can be judged
//! by what the database holds in the end.

use dlock::LockKey;
use resource::OwnerToken;
use resource::fence::cron::Tick;
use resource::fence::{TickStatements, WriteSeq};
use resource::jobs::{JobGrant, JobStatements, Part, number_of};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Transaction};

/// Creates the table. The lock, whose number no other program uses, lets several workers do so at once.
const CREATE: &str = "SELECT pg_advisory_xact_lock(110352458277732);
    CREATE TABLE IF NOT EXISTS task_row (
      number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      -- The cron or the queue.
      resource_id  text NOT NULL,
      task         bigint NOT NULL,
      token        bigint NOT NULL,
      owner_prefix text NOT NULL
    )";

/// Writes the row of a tick, which is done in the same transaction. $1 cron, $2 tick.
const TICK: &str = "INSERT INTO task_row (resource_id, task, token, owner_prefix)
    SELECT resource_id, tick, token, coalesce(owner_prefix, '') FROM cron_tick
    WHERE resource_id = $1::text AND tick = $2::bigint";

/// Writes the row of a job. $1 queue, $2 job, $3 token, $4 part of the owner that may be logged.
const JOB: &str = "INSERT INTO task_row (resource_id, task, token, owner_prefix)
    VALUES ($1::text, $2::bigint, $3::bigint, $4::text)";

/// Waits for the commits of transactions that have written a row.
const SETTLE: &str = "BEGIN; LOCK TABLE task_row IN ACCESS EXCLUSIVE MODE; COMMIT";

const READ: &str = "SELECT resource_id, task, token, owner_prefix FROM task_row ORDER BY number";

/// Creates the tables of ticks, jobs and rows, if there are none.
pub(crate) async fn migrate(client: &Client) -> Result<(), Error> {
    resource::fence::migrate(client).await?;
    client.batch_execute(CREATE).await
}

/// The row of a task that has taken effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskRow {
    /// The name of the cron or of the queue.
    pub(crate) key: String,
    pub(crate) task: u64,
    /// The fencing token of the grant or of the claim.
    pub(crate) token: u64,
    /// The part of the owner token that may be logged.
    pub(crate) owner: String,
}

/// Reads all rows in their order, once no transaction that has written one goes on.
pub(crate) async fn read(client: &Client) -> Result<Vec<TaskRow>, Error> {
    client.batch_execute(SETTLE).await?;
    client.query_typed(READ, &[]).await?.iter().map(row_of).collect()
}

fn row_of(row: &Row) -> Result<TaskRow, Error> {
    Ok(TaskRow {
        key: row.try_get(0)?,
        task: row.try_get::<_, i64>(1)?.cast_unsigned(),
        token: row.try_get::<_, i64>(2)?.cast_unsigned(),
        owner: row.try_get(3)?,
    })
}

/// Writes the row of each tick and each job of a key.
#[derive(Clone)]
pub(crate) struct RowOf(pub(crate) LockKey);

impl TickStatements for RowOf {
    async fn run(&mut self, transaction: &mut Transaction<'_>, tick: Tick, _: &[u8]) -> Result<(), Error> {
        let (cron, tick) = (self.0.name(), tick.as_u64().cast_signed());
        let of: [(&(dyn ToSql + Sync), Type); 2] = [(&cron, Type::TEXT), (&tick, Type::INT8)];
        transaction.query_typed(TICK, &of).await.map(drop)
    }
}

impl JobStatements for RowOf {
    async fn run(
        &mut self,
        transaction: &mut Transaction<'_>,
        grant: &JobGrant,
        _: WriteSeq,
        part: &Part,
    ) -> Result<(), Error> {
        // The record commits for grants of jobs alone.
        let (Part::Done(_), Some(job)) = (part, number_of(&grant.key)) else { return Ok(()) };
        let (queue, owner) = (self.0.name(), grant.owner.as_ref().map_or("", OwnerToken::prefix));
        let (job, token) = (job.cast_signed(), grant.token.as_u64().cast_signed());
        let row: [(&(dyn ToSql + Sync), Type); 4] =
            [(&queue, Type::TEXT), (&job, Type::INT8), (&token, Type::INT8), (&owner, Type::TEXT)];
        transaction.query_typed(JOB, &row).await.map(drop)
    }
}
