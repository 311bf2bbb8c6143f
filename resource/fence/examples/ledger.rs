//! Run it: `cargo run --all-features --example ledger -- postgresql://USER@HOST/DB redis://HOST:6379`.
//!
//! A holder posts several transfers, each in a SERIALIZABLE transaction with a number of its own. A newer
//! holder takes over, and the rest of the first one's transfers is refused: the ledger balances.
#![allow(clippy::disallowed_methods, reason = "a live program")]

use std::time::Duration;

use dlock::{AnyBackend, Handle, Lock, LockKey, Options, TokioRuntime};
use fence::{Entry, OwnerToken, ResourceKey, Stop, WriteSeq};
use tokio_postgres::{Client, Error, IsolationLevel, NoTls};

/// The most runs of one transaction that meets others.
const RUNS_MAX: usize = 10;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS ledger \
                     (token bigint, seq bigint, account text, cents bigint, PRIMARY KEY (token, seq, account))";

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
    let key = LockKey::new("ledger", "2026")?;
    let first = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;
    for number in 1..=2 {
        println!("first, transfer {number}: {}", post(&mut client, &first, number).await?);
    }
    // The first holder pauses until its lease has ended.
    let second = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;
    println!("second, transfer 1: {}", post(&mut client, &second, 1).await?);
    println!("first, transfer 3: {}", post(&mut client, &first, 3).await?);
    let sums = "SELECT count(*), sum(cents)::bigint FROM ledger";
    let row = client.query_one(sums, &[]).await?;
    println!("{} lines, whose sum is {}", row.get::<_, i64>(0), row.get::<_, i64>(1));
    Ok(())
}

/// Posts a transfer, and runs its transaction again while it meets others; returns the outcome in words.
async fn post(
    client: &mut Client,
    handle: &Handle<AnyBackend<TokioRuntime>>,
    number: u64,
) -> Result<&'static str, Box<dyn std::error::Error>> {
    let key = ResourceKey::try_from(handle.key())?;
    let owner = OwnerToken::try_from(handle.owner())?;
    let seq = WriteSeq::new(number).ok_or("transfers count from 1")?;
    let payload = serde_json::json!({ "from": "cash", "to": "rent", "cents": 100 });
    let entry = Entry::new(handle.fence()).owner(&owner).seq(seq).payload(payload);
    for _ in 0..RUNS_MAX {
        match transfer(client, &key, &entry, number).await {
            Ok(()) => return Ok("posted"),
            Err(Stop::Repeated(_)) => return Ok("posted before"),
            Err(Stop::Refused(_)) => return Ok("refused: a newer holder posts"),
            Err(Stop::Retry(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err("other transactions were in the way each time".into())
}

async fn transfer(
    client: &mut Client,
    key: &ResourceKey,
    entry: &Entry,
    number: u64,
) -> Result<(), Stop<Error>> {
    let serializable = client.build_transaction().isolation_level(IsolationLevel::Serializable);
    let mut transaction = serializable.start().await?;
    fence::check(&mut transaction, key, entry.clone()).await?;
    // The check has refused numbers beyond a bigint.
    let (token, seq) = (entry.token().as_u64().cast_signed(), number.cast_signed());
    for (account, cents) in [("cash", -100_i64), ("rent", 100)] {
        let line = "INSERT INTO ledger VALUES ($1, $2, $3, $4)";
        transaction.execute(line, &[&token, &seq, &account, &cents]).await?;
    }
    Ok(transaction.commit().await?)
}
