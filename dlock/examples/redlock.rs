//! Redlock: the majority of several independent Redis grants a lock.
//!
//! Run it: `cargo run --example redlock -- redis://one:6379,two:6379,three:6379`.

use std::time::Duration;

use dlock::{Lock, LockKey, Options, TryAcquireError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("give the URL: redis://one:6379,two:6379,three:6379")?;
    let lock = Lock::connect(&url, Options::new(Duration::from_secs(10))).await?;
    let key = LockKey::new("cache", "warm-up")?;
    match lock.try_acquire(&key).await {
        Ok(handle) => {
            println!("warms the cache up, with token {}", handle.fence());
            handle.release().await?;
        }
        // Another process does it: nothing is left to do.
        Err(TryAcquireError::Taken { retry_after }) => println!("somebody else does, for {retry_after:?}"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
