//! The steps of a queue's workers, each in a transaction on a connection that it returns.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Transaction};

use super::super::record::{JobGrant, Part};
use super::JobStatements;
use crate::fence::{Failed, Job, JobQueue, JobStop, PostgresTransaction, Stop, WriteSeq};
use crate::hex::hex;

const ENQUEUE: &str = include_str!("enqueue.sql");
const NEXT: &str = include_str!("next.sql");
const JOB: &str = include_str!("job.sql");
/// Fails if a statement of the transaction has failed. Its commit would not: PostgreSQL answers that by a
/// rollback, which the client takes for a success.
const STANDS: &str = "SELECT 1";

/// The result of a step, and its connection.
type Taken<T> = Result<(Client, T), JobStop<Error>>;

/// Stores a job, if there is none of its number. Returns the row of the one that there was.
pub(super) async fn enqueue(mut client: Client, parameters: Value) -> Taken<Option<Value>> {
    let mut transaction = client.transaction().await.map_err(failed)?;
    let stored = transaction.json(ENQUEUE, &parameters.to_string()).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    match (stored, parameters["id"].as_u64()) {
        (None, Some(id)) => look(client, id).await,
        _ => Ok((client, None)),
    }
}

/// The answer to a claim.
pub(super) enum Found {
    Job(Job),
    Wait(Duration),
    Empty,
}

/// Claims the next job.
pub(super) async fn claim(mut client: Client, queue: JobQueue, owner: String) -> Taken<Found> {
    let mut transaction = client.transaction().await.map_err(failed)?;
    let found = match queue.claim(&mut transaction, &owner).await? {
        Some(job) => Found::Job(job),
        None => next(&mut transaction, &queue.name).await?.map_or(Found::Empty, Found::Wait),
    };
    transaction.commit().await.map_err(failed)?;
    Ok((client, found))
}

/// Returns the time until the next job may be claimed; `None` if none is left.
async fn next(transaction: &mut Transaction<'_>, queue: &str) -> Result<Option<Duration>, JobStop<Error>> {
    let answer = transaction.json(NEXT, &json!({ "queue": queue }).to_string()).await.map_err(failed)?;
    let millis = answer.as_deref().map(read).transpose()?.and_then(|millis| millis.as_i64());
    Ok(millis.map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or_default())))
}

/// Extends the lease of a claim.
pub(super) async fn heartbeat(mut client: Client, queue: JobQueue, job: Job) -> Taken<()> {
    let mut transaction = client.transaction().await.map_err(failed)?;
    queue.heartbeat(&mut transaction, &job).await?;
    transaction.commit().await.map_err(failed)?;
    Ok((client, ()))
}

/// Gives a job back after a failure, or makes it dead.
pub(super) async fn fail(mut client: Client, queue: JobQueue, job: Job, error: String) -> Taken<Failed> {
    let mut transaction = client.transaction().await.map_err(failed)?;
    // The longest pause of the backoff: the worker has drawn it.
    let fate = queue.fail(&mut transaction, &job, &error, [u8::MAX; 8]).await?;
    transaction.commit().await.map_err(failed)?;
    Ok((client, fate))
}

/// Commits a part of a job with the user's statements.
pub(super) async fn commit<S: JobStatements>(
    mut client: Client,
    (queue, job): (JobQueue, Job),
    statements: &mut S,
    grant: &JobGrant,
    number: WriteSeq,
    part: &Part,
) -> Taken<()> {
    let mut transaction = client.transaction().await.map_err(failed)?;
    match part {
        Part::Progress(progress) => {
            queue.advance(&mut transaction, &job, &Value::from(hex(progress))).await?;
        }
        Part::Done(_) => queue.complete(&mut transaction, &job).await?,
    }
    statements.run(&mut transaction, grant, number, part).await.map_err(failed)?;
    transaction.batch_execute(STANDS).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok((client, ()))
}

/// Reads the row of a job.
pub(super) async fn look(client: Client, id: u64) -> Taken<Option<Value>> {
    let parameters = json!({ "id": id }).to_string();
    let row = client.query_typed_opt(JOB, &[(&parameters, Type::TEXT)]).await.map_err(failed)?;
    let text: Option<String> = row.map(|row| row.try_get(0)).transpose().map_err(failed)?;
    let row = text.as_deref().map(read).transpose()?;
    Ok((client, row))
}

fn read(text: &str) -> Result<Value, JobStop<Error>> {
    serde_json::from_str(text).map_err(|_| JobStop::Stop(Stop::Corrupt("a job is no JSON")))
}

fn failed(error: Error) -> JobStop<Error> {
    JobStop::Stop(Stop::from(error))
}
