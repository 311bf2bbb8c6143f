//! A semaphore: at most two of all processes call a service at once. If a process dies, its permit is free
//! again after the TTL.
//!
//! Run it in three terminals: `cargo run --example semaphore -- redis://127.0.0.1:6379`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a live program")]

use std::time::Duration;

use dlock::{Cap, Lock, LockKey, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let mut options = Options::new(Duration::from_secs(5));
    // All processes must give the same number.
    options.permits = 2;
    let permits = Lock::connect(&url, options).await?;
    let key = LockKey::new("service", "geocoder")?;
    for call in 1..=3 {
        let permit = permits.acquire(&key, permits.deadline_in(Duration::from_secs(60))).await?;
        let beside: Vec<String> = permit.beside().iter().map(ToString::to_string).collect();
        println!("call {call}, with token {} beside [{}]", permit.fence(), beside.join(", "));
        let work = tokio::time::sleep(Duration::from_millis(200));
        permit.while_held(Cap(Duration::from_secs(60)), work).await?;
        permit.release().await?;
    }
    permits.close(permits.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}
