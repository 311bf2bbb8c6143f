//! ZooKeeper: locks below a node of their own, for a user who logs in.
//!
//! Run it: `cargo run --example zookeeper --features zookeeper -- zookeeper://app:secret@localhost/prod`.

use std::time::Duration;

use dlock::{Lock, LockKey, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    let lock = Lock::connect(&url, Options::new(Duration::from_secs(10))).await?;
    let key = LockKey::new("schema", "migration")?;
    let handle = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;
    // For work that can't be wrapped in a future: renewed in the background, and checked between two steps.
    handle.keep_alive(dlock::Cap(Duration::from_secs(600)));
    for step in 1..=3 {
        if !handle.is_valid() {
            return Err("the lease is lost: the rest of the migration is another holder's".into());
        }
        println!("step {step}, with token {}", handle.fence());
    }
    handle.release().await?;
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}
