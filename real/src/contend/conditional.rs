//! Two mechanisms without a lock, on PostgreSQL, under the same load: a conditional update decides, in the
//! database that holds the data.
//!
//! - *Version*: reads the row and its version, works, and writes if the version is unchanged. The work is
//!   lost if another contender was faster, but no contender waits, and no lease can expire.
//! - *Jobs*: takes a job that is ready by marking it as running, works, and marks it as ready again. No work
//!   is lost. A worker that dies keeps its job until `lease_until`; the next worker to take it raises the
//!   version, so that a late update of the first worker changes no row.
//!
//! Source: "distributed-coordination-part-018", sections 22, "Database Optimistic Lock Alternative", and 25,
//! "Job Ownership Pattern".

use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use dlock::{Backoff, Released, Runtime};
use tokio::task::JoinSet;
use tokio_postgres::{Config, NoTls};

use super::{Arm, Attempt, Book, LoadError, Offer, Report};
use crate::timer;
use dlock::TokioRuntime;

/// The largest number of connections: a small machine commits about as many transactions at once.
const CONNECTIONS_MAX: usize = 32;

/// Creates two tables, as in the source, with a row for each key.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS contend_cases (
    case_id     text PRIMARY KEY,
    assigned_to text,
    version     bigint NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS contend_jobs (
    job_id      text PRIMARY KEY,
    status      text NOT NULL DEFAULT 'READY',
    worker_id   text,
    lease_until timestamptz,
    version     bigint NOT NULL DEFAULT 0
);";
const INSERT_CASE: &str = "INSERT INTO contend_cases (case_id) VALUES ($1) ON CONFLICT DO NOTHING";
const INSERT_JOB: &str = "INSERT INTO contend_jobs (job_id) VALUES ($1) ON CONFLICT DO NOTHING";
const READ_CASE: &str = "SELECT version FROM contend_cases WHERE case_id = $1";
const WRITE_CASE: &str =
    "UPDATE contend_cases SET assigned_to = $2, version = version + 1 WHERE case_id = $1 AND version = $3";
/// A job whose lease is over is ready, too.
const TAKE_JOB: &str = "UPDATE contend_jobs SET status = 'RUNNING', worker_id = $2, \
     lease_until = now() + $3 * interval '1 millisecond', version = version + 1 \
     WHERE job_id = $1 AND (status = 'READY' OR lease_until < now()) RETURNING version";
const END_JOB: &str = "UPDATE contend_jobs SET status = 'READY', worker_id = NULL, lease_until = NULL \
     WHERE job_id = $1 AND worker_id = $2 AND version = $3";

/// The outcome of one try.
enum Try {
    Won,
    Lost,
}

/// Offers the load to the PostgreSQL at `url`.
pub(super) async fn contend(offer: Offer, url: &str, runtime: TokioRuntime) -> Result<Report, LoadError> {
    let pool = pool(url)?;
    prepare(&pool, &offer).await?;
    let book = Arc::new(Book::open(offer, &runtime));
    let mut contenders = JoinSet::new();
    for _ in 0..book.offer.at_most_attempts(book.offer.load.contenders) {
        let contender = Contender { pool: pool.clone(), runtime: runtime.clone(), book: Arc::clone(&book) };
        contenders.spawn(async move { contender.serve_attempts().await });
    }
    while let Some(ended) = contenders.join_next().await {
        ended??;
    }
    book.report()
}

/// Returns connections to the PostgreSQL at `url`, each opened when it is needed.
pub(crate) fn pool(url: &str) -> Result<Pool, LoadError> {
    // Without its cause, which may quote a part of the URL with the password.
    let config = Config::from_str(url).map_err(|error| LoadError::Postgres(error.to_string()))?;
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let pool =
        Pool::builder(Manager::from_config(config, NoTls, recycling)).max_size(CONNECTIONS_MAX).build();
    pool.map_err(|error| failed(&error))
}

async fn prepare(pool: &Pool, offer: &Offer) -> Result<(), LoadError> {
    let client = pool.get().await.map_err(|error| failed(&error))?;
    client.batch_execute(TABLES).await.map_err(|error| failed(&error))?;
    let insert = if offer.load.arm == Arm::Jobs { INSERT_JOB } else { INSERT_CASE };
    let insert = client.prepare_cached(insert).await.map_err(|error| failed(&error))?;
    for key in 0..offer.at_most_attempts(offer.load.keys) {
        let key = format!("{}:{key}", offer.load.key);
        client.execute(&insert, &[&key]).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

struct Contender {
    pool: Pool,
    runtime: TokioRuntime,
    book: Arc<Book>,
}

impl Contender {
    async fn serve_attempts(&self) -> Result<(), LoadError> {
        while let Some(attempt) = self.book.next(&self.runtime).await {
            let load = &self.book.offer.load;
            let key = format!("{}:{}", load.key, attempt.number % load.keys);
            let called = self.runtime.now();
            if called >= self.book.deadline(attempt) {
                self.book.given_up(attempt, called);
                continue;
            }
            let mut retry = 0;
            loop {
                let outcome = match load.arm {
                    Arm::Jobs => self.work_as_job(&key, attempt, called).await?,
                    _ => self.write_by_version(&key, attempt, called).await?,
                };
                if let Try::Won = outcome {
                    break;
                }
                self.book.conflict();
                self.back_off(retry).await;
                retry += 1;
                let now = self.runtime.now();
                if now >= self.book.end().min(self.book.deadline(attempt)) {
                    self.book.given_up(attempt, now);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads, works, and writes if no other contender has written since. It keeps no connection while it
    /// works.
    async fn write_by_version(
        &self,
        key: &str,
        attempt: Attempt,
        called: dlock::Instant,
    ) -> Result<Try, LoadError> {
        let version: i64 = {
            let client = self.pool.get().await.map_err(|error| failed(&error))?;
            let read = client.prepare_cached(READ_CASE).await.map_err(|error| failed(&error))?;
            let row = client.query_one(&read, &[&key]).await.map_err(|error| failed(&error))?;
            row.try_get(0).map_err(|error| failed(&error))?
        };
        self.work().await;
        let client = self.pool.get().await.map_err(|error| failed(&error))?;
        let write = client.prepare_cached(WRITE_CASE).await.map_err(|error| failed(&error))?;
        let won = client.execute(&write, &[&key, &attempt.number.to_string(), &version]).await;
        if won.map_err(|error| failed(&error))? == 0 {
            return Ok(Try::Lost);
        }
        self.book.granted(attempt, self.runtime.now(), called);
        Ok(Try::Won)
    }

    /// Takes the job, works, and returns the job.
    async fn work_as_job(
        &self,
        key: &str,
        attempt: Attempt,
        called: dlock::Instant,
    ) -> Result<Try, LoadError> {
        let worker = attempt.number.to_string();
        let ttl_ms = self.book.offer.load.ttl.as_millis() as f64;
        let version: i64 = {
            let client = self.pool.get().await.map_err(|error| failed(&error))?;
            let take = client.prepare_cached(TAKE_JOB).await.map_err(|error| failed(&error))?;
            match client.query_opt(&take, &[&key, &worker, &ttl_ms]).await.map_err(|error| failed(&error))? {
                None => return Ok(Try::Lost),
                Some(row) => row.try_get(0).map_err(|error| failed(&error))?,
            }
        };
        self.book.granted(attempt, self.runtime.now(), called);
        self.work().await;
        let before = self.runtime.now();
        let client = self.pool.get().await.map_err(|error| failed(&error))?;
        let end = client.prepare_cached(END_JOB).await.map_err(|error| failed(&error))?;
        client.execute(&end, &[&key, &worker, &version]).await.map_err(|error| failed(&error))?;
        self.book.released(Released::Done, self.runtime.now().saturating_since(before));
        Ok(Try::Won)
    }

    async fn work(&self) {
        self.book
            .or_stop(&self.runtime, timer::sleep(self.book.offer.load.work + self.book.offer.load.pause))
            .await;
    }

    /// Waits with the backoff of the lock library.
    async fn back_off(&self, retry: u32) {
        let mut random = [0; 8];
        self.runtime.fill_random(&mut random);
        let wait: Duration = Backoff::default().wait(retry, random);
        self.book.or_stop(&self.runtime, self.runtime.sleep_until(self.runtime.now() + wait)).await;
    }
}

/// Converts an error; PostgreSQL's own message is in its source.
fn failed(error: &(dyn Error + 'static)) -> LoadError {
    let cause = error.source().map_or(String::new(), |cause| format!(": {cause}"));
    LoadError::Postgres(format!("{error}{cause}"))
}
