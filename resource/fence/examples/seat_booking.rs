//! Run it: `cargo run --all-features --example seat_booking -- postgresql://USER@HOST/DB redis://HOST:6379`.
//!
//! Two requests book one seat, with sqlx. Each outcome of the check has its answer to the browser: a late
//! request gets 409, and a request that is sent again gets its first answer.
#![allow(clippy::disallowed_methods, reason = "a live program")]

use std::time::Duration;

use dlock::{AnyBackend, Handle, Lock, LockKey, Options, TokioRuntime};
use fence::{Entry, OwnerToken, ResourceKey, Stop};
use sqlx::PgPool;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS seats (seat text PRIMARY KEY, passenger text NOT NULL)";
const BOOK: &str = "INSERT INTO seats VALUES ('12A', $1) ON CONFLICT DO NOTHING";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut urls = std::env::args().skip(1);
    let postgres = urls.next().unwrap_or_else(|| "postgresql://postgres@127.0.0.1/postgres".to_owned());
    let redis = urls.next().unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let pool = PgPool::connect(&postgres).await?;
    fence::migrate(&pool).await?;
    sqlx::query(TABLE).execute(&pool).await?;

    let lock = Lock::connect(&redis, Options::new(Duration::from_millis(300))).await?;
    let seat = LockKey::new("seats", "12A")?;
    let ada = lock.acquire(&seat, lock.deadline_in(Duration::from_secs(60))).await?;
    // The process of Ada's request pauses until its lease has ended.
    let bob = lock.acquire(&seat, lock.deadline_in(Duration::from_secs(60))).await?;

    println!("Bob: {}", answer(&pool, &bob, "Bob").await?);
    println!("Bob again: {}", answer(&pool, &bob, "Bob").await?);
    println!("Ada: {}", answer(&pool, &ada, "Ada").await?);
    bob.release().await?;
    let eve = lock.acquire(&seat, lock.deadline_in(Duration::from_secs(60))).await?;
    println!("Eve: {}", answer(&pool, &eve, "Eve").await?);
    let passenger: String = sqlx::query_scalar("SELECT passenger FROM seats").fetch_one(&pool).await?;
    println!("seat 12A is {passenger}'s");
    Ok(())
}

/// Books the seat and returns the answer over HTTP.
async fn answer(
    pool: &PgPool,
    handle: &Handle<AnyBackend<TokioRuntime>>,
    passenger: &str,
) -> Result<&'static str, Box<dyn std::error::Error>> {
    let key = ResourceKey::try_from(handle.key())?;
    let owner = OwnerToken::try_from(handle.owner())?;
    let entry = Entry::new(handle.fence()).owner(&owner).payload(serde_json::json!({ "for": passenger }));
    Ok(match book(pool, &key, entry, passenger).await {
        Ok(true) => "200 booked",
        Ok(false) => "409 the seat is taken",
        Err(Stop::Repeated(_)) => "200 booked before",
        Err(Stop::Refused(_)) => "409 a newer request was here",
        Err(Stop::Retry(_)) => "503 try again",
        Err(error) => return Err(error.into()),
    })
}

/// Returns false if the seat has a passenger.
async fn book(
    pool: &PgPool,
    key: &ResourceKey,
    entry: Entry,
    passenger: &str,
) -> Result<bool, Stop<sqlx::Error>> {
    let mut transaction = pool.begin().await?;
    fence::check(&mut transaction, key, entry).await?;
    let booked = sqlx::query(BOOK).bind(passenger).execute(&mut *transaction).await?;
    if booked.rows_affected() == 0 {
        // Nothing was written: the dropped transaction takes the fence back, too.
        return Ok(false);
    }
    transaction.commit().await?;
    Ok(true)
}
