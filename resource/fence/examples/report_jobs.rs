//! Run it: `cargo run --all-features --example report_jobs -- postgresql://USER@HOST/DB redis://HOST:6379`.
//!
//! Two workers export one report. The first one pauses until its lease has ended, and wakes up after the
//! second one has written: its transaction is refused, and the newer report stays.
#![allow(clippy::disallowed_methods, reason = "a live program")]

use std::time::Duration;

use dlock::{AnyBackend, Handle, Lock, LockKey, Options, TokioRuntime};
use fence::{Entry, OwnerToken, ResourceKey, Stop};
use tokio_postgres::{Client, Error, NoTls};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS reports (month text PRIMARY KEY, body text NOT NULL)";
const WRITE: &str = "INSERT INTO reports VALUES ($1, $2) ON CONFLICT (month) DO UPDATE SET body = $2";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut urls = std::env::args().skip(1);
    let postgres = urls.next().unwrap_or_else(|| "postgresql://postgres@127.0.0.1/postgres".to_owned());
    let redis = urls.next().unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let (mut client, connection) = tokio_postgres::connect(&postgres, NoTls).await?;
    tokio::spawn(connection);
    fence::migrate(&client).await?;
    client.batch_execute(TABLE).await?;

    let lock = Lock::connect(&redis, Options::new(Duration::from_millis(300))).await?;
    let key = LockKey::new("reports", "2026-11")?;
    let paused = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;
    // The first worker renews nothing, as if it were paused: the second one acquires the lock.
    let newer = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;

    for (name, handle) in [("second", &newer), ("first", &paused)] {
        match export(&mut client, handle, &format!("by the {name} worker")).await? {
            Exported::Written => println!("the {name} worker wrote the report"),
            Exported::Late => println!("the {name} worker came too late: its report is dropped"),
        }
    }
    let row = client.query_one("SELECT body FROM reports WHERE month = '2026-11'", &[]).await?;
    println!("the report is {}", row.get::<_, &str>(0));
    Ok(())
}

enum Exported {
    Written,
    Late,
}

/// Writes the report in a transaction that the fence checks first.
async fn export(
    client: &mut Client,
    handle: &Handle<AnyBackend<TokioRuntime>>,
    body: &str,
) -> Result<Exported, Box<dyn std::error::Error>> {
    let key = ResourceKey::try_from(handle.key())?;
    let owner = OwnerToken::try_from(handle.owner())?;
    let entry = Entry::new(handle.fence()).owner(&owner).payload(serde_json::json!({ "body": body }));
    match write(client, &key, entry, body).await {
        // Repeated: the first attempt was committed, and its answer was lost.
        Ok(()) | Err(Stop::Repeated(_)) => Ok(Exported::Written),
        Err(Stop::Refused(_)) => Ok(Exported::Late),
        Err(error) => Err(error.into()),
    }
}

async fn write(client: &mut Client, key: &ResourceKey, entry: Entry, body: &str) -> Result<(), Stop<Error>> {
    let mut transaction = client.transaction().await?;
    fence::check(&mut transaction, key, entry).await?;
    transaction.execute(WRITE, &[&"2026-11", &body]).await?;
    Ok(transaction.commit().await?)
}
