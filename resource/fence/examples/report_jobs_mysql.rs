//! Run it: `cargo run --all-features --example report_jobs_mysql -- mysql://USER@HOST/DB redis://HOST:6379`.
//!
//! The example `report_jobs` on MySQL or MariaDB, with sqlx: two workers export one report, and the one that
//! wakes up late is refused. Its token has a limit, too: one that no lock has granted can't lock the report.
#![allow(clippy::disallowed_methods, reason = "a live program")]

use std::time::Duration;

use dlock::{AnyBackend, FencingToken, Handle, Lock, LockKey, Options, TokioRuntime};
use fence::{Entry, MaxJump, OwnerToken, Refusal, ResourceKey, Stop};
use sqlx::MySqlPool;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS reports (month varchar(7) PRIMARY KEY, body text NOT NULL)";
const WRITE: &str = "REPLACE INTO reports VALUES ('2026-11', ?)";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut urls = std::env::args().skip(1);
    let mysql = urls.next().unwrap_or_else(|| "mysql://root@127.0.0.1/test".to_owned());
    let redis = urls.next().unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let pool = MySqlPool::connect(&mysql).await?;
    // Both commit: a transaction comes after them.
    fence::migrate(&pool).await?;
    sqlx::query(TABLE).execute(&pool).await?;

    let lock = Lock::connect(&redis, Options::new(Duration::from_millis(300))).await?;
    let key = LockKey::new("reports", "2026-11")?;
    let paused = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;
    // The first worker renews nothing, as if it were paused: the second one acquires the lock.
    let newer = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;

    for (name, handle) in [("second", &newer), ("first", &paused)] {
        println!("the {name} worker: {}", export(&pool, handle, handle.fence(), name).await?);
    }
    let broken = "18446744073709551615".parse()?;
    println!("a broken worker: {}", export(&pool, &newer, broken, "broken").await?);
    let body: String = sqlx::query_scalar("SELECT body FROM reports").fetch_one(&pool).await?;
    println!("the report is {body}");
    Ok(())
}

/// Writes the report with `token`, and runs its transaction again while it meets others; returns the outcome
/// in words.
async fn export(
    pool: &MySqlPool,
    handle: &Handle<AnyBackend<TokioRuntime>>,
    token: FencingToken,
    name: &str,
) -> Result<&'static str, Box<dyn std::error::Error>> {
    let key = ResourceKey::try_from(handle.key())?;
    let owner = OwnerToken::try_from(handle.owner())?;
    let body = format!("by the {name} worker");
    let entry = Entry::new(token).owner(&owner).payload(serde_json::json!({ "body": body }));
    // The tokens of Redis count the grants of a key.
    let entry = entry.max_jump(MaxJump::COUNTER);
    for _ in 0..10 {
        match write(pool, &key, entry.clone(), &body).await {
            // Repeated: the first attempt was committed, and its answer was lost.
            Ok(()) | Err(Stop::Repeated(_)) => return Ok("written"),
            Err(Stop::Refused(Refusal::Jump { .. })) => return Ok("refused: no lock has granted its token"),
            Err(Stop::Refused(_)) => return Ok("too late: its report is dropped"),
            Err(Stop::Retry(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err("other transactions were in the way each time".into())
}

async fn write(
    pool: &MySqlPool,
    key: &ResourceKey,
    entry: Entry,
    body: &str,
) -> Result<(), Stop<sqlx::Error>> {
    let mut transaction = pool.begin().await?;
    fence::check(&mut transaction, key, entry).await?;
    sqlx::query(WRITE).bind(body).execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}
