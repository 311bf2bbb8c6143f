//! Run it: `cargo run --all-features --example mail_jobs -- postgresql://USER@HOST/DB`.
//!
//! Workers share a queue of mails. The first worker claims a job and pauses until its lease has ended; the
//! second one claims it and sends the mail. The first one's transaction is refused. A mail without an address
//! fails until it is dead, and an operator requeues it.
#![allow(clippy::disallowed_methods, reason = "a live program")]

use std::time::Duration;

use dlock::Backoff;
use fence::{Failed, Job, JobQueue, JobStop};
use serde_json::json;
use tokio_postgres::{Client, Error, NoTls};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS outbox (job bigint NOT NULL, mail text NOT NULL)";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url =
        std::env::args().nth(1).unwrap_or_else(|| "postgresql://postgres@127.0.0.1/postgres".to_owned());
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    fence::migrate(&client).await?;
    client.batch_execute(TABLE).await?;
    let backoff = Backoff { base: Duration::from_millis(10), max: Duration::from_millis(20) };
    let lease = Duration::from_millis(300);
    let queue = JobQueue { lease, attempts_max: 3, backoff, ..JobQueue::new("mails") };
    enqueue(&mut client, &queue, "ada@example.org").await?;

    let paused = next(&mut client, &queue, "first").await?;
    // The first worker sends no heartbeat, as if it were paused: the second one gets the job.
    let job = next(&mut client, &queue, "second").await?;
    for (worker, job) in [("second", job), ("first", paused)] {
        match send(&mut client, &queue, &job).await {
            Ok(()) => println!("the {worker} worker sent the mail, in attempt {}", job.attempts),
            Err(JobStop::Superseded { .. }) => println!("the {worker} worker came too late"),
            Err(error) => return Err(error.into()),
        }
    }

    let number = enqueue(&mut client, &queue, "nobody").await?;
    loop {
        let job = next(&mut client, &queue, "third").await?;
        let mut transaction = client.transaction().await?;
        let failed = queue.fail(&mut transaction, &job, "no such address", [0; 8]).await?;
        transaction.commit().await?;
        println!("attempt {} failed", job.attempts);
        if failed == Failed::Dead {
            break;
        }
    }
    let mut transaction = client.transaction().await?;
    let is_requeued = queue.requeue(&mut transaction, number).await?;
    transaction.commit().await?;
    println!("requeued: {is_requeued}");
    let job = next(&mut client, &queue, "third").await?;
    send(&mut client, &queue, &job).await?;
    let row = client.query_one("SELECT count(*) FROM outbox", &[]).await?;
    println!("{} mails", row.get::<_, i64>(0));
    Ok(())
}

async fn enqueue(client: &mut Client, queue: &JobQueue, to: &str) -> Result<u64, JobStop<Error>> {
    let mut transaction = client.transaction().await.map_err(fence::Stop::from)?;
    let number = queue.enqueue(&mut transaction, &json!({ "to": to }), Duration::ZERO).await?;
    transaction.commit().await.map_err(fence::Stop::from)?;
    Ok(number)
}

/// Waits for the next job that is ready, and claims it.
async fn next(client: &mut Client, queue: &JobQueue, worker: &str) -> Result<Job, JobStop<Error>> {
    loop {
        let mut transaction = client.transaction().await.map_err(fence::Stop::from)?;
        let job = queue.claim(&mut transaction, worker).await?;
        transaction.commit().await.map_err(fence::Stop::from)?;
        match job {
            Some(job) => return Ok(job),
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Writes the mail to the outbox, and the job as done, in one transaction.
async fn send(client: &mut Client, queue: &JobQueue, job: &Job) -> Result<(), JobStop<Error>> {
    let mut transaction = client.transaction().await.map_err(fence::Stop::from)?;
    queue.complete(&mut transaction, job).await?;
    let (number, mail) = (job.id.cast_signed(), job.payload["to"].to_string());
    let insert = "INSERT INTO outbox VALUES ($1, $2)";
    transaction.execute(insert, &[&number, &mail]).await.map_err(fence::Stop::from)?;
    transaction.commit().await.map_err(fence::Stop::from)?;
    Ok(())
}
