//! A lock for which at most two may wait: a service that makes one report at a time, and answers "busy" at
//! once to the others instead of keeping them waiting.
//!
//! Run it in several terminals: `cargo run --example queue -- redis://127.0.0.1:6379`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a live program")]

use std::time::Duration;

use dlock::{AcquireError, Cap, Lock, LockKey, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let mut options = Options::new(Duration::from_secs(5));
    // All processes must set it.
    options.waiters_max = Some(2);
    let lock = Lock::connect(&url, options).await?;
    let key = LockKey::new("reports", "sales")?;
    // Five requests at once: one is served, two wait, and two are refused.
    let requests = (1..=5).map(|request| report(&lock, &key, request));
    for outcome in futures_util::future::join_all(requests).await {
        println!("{}", outcome?);
    }
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}

/// Makes the report for one request, or says why not.
async fn report<B: dlock::Backend>(
    lock: &Lock<B>,
    key: &LockKey,
    request: u32,
) -> Result<String, AcquireError> {
    let handle = match lock.acquire(key, lock.deadline_in(Duration::from_secs(60))).await {
        Err(AcquireError::QueueFull { waiting, max }) => {
            return Ok(format!("request {request}: busy, {waiting} of {max} wait"));
        }
        acquired => acquired?,
    };
    let token = handle.fence();
    let made =
        handle.while_held(Cap(Duration::from_secs(60)), tokio::time::sleep(Duration::from_millis(300)));
    let outcome = match made.await {
        Ok(()) => format!("request {request}: made with token {token}"),
        Err(lost) => format!("request {request}: {lost}"),
    };
    // The lease has ended otherwise.
    let _ = handle.release().await;
    Ok(outcome)
}
