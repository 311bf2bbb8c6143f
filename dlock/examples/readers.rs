//! A lock for readers and a writer: a catalogue that many processes read, and that is replaced now and then.
//! A writer waits for the readers before it alone, so that it is served however many come.
//!
//! Run it in three terminals: `cargo run --example readers -- redis://127.0.0.1:6379`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a live program")]

use std::time::Duration;

use dlock::{Cap, Lock, LockKey, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let mut options = Options::new(Duration::from_secs(5));
    // All processes must set it.
    options.readers = true;
    let lock = Lock::connect(&url, options).await?;
    let key = LockKey::new("catalogue", "books")?;
    for round in 1..=3 {
        let deadline = lock.deadline_in(Duration::from_secs(60));
        let reader = lock.acquire_shared(&key, deadline).await?;
        let beside: Vec<String> = reader.beside().iter().map(ToString::to_string).collect();
        println!("round {round}: reads with token {} beside [{}]", reader.fence(), beside.join(", "));
        reader
            .while_held(Cap(Duration::from_secs(60)), tokio::time::sleep(Duration::from_millis(200)))
            .await?;
        // A reader does not become a writer: another writer may come between.
        reader.release().await?;
        let writer = lock.acquire(&key, deadline).await?;
        println!("round {round}: writes with token {}, alone", writer.fence());
        writer
            .while_held(Cap(Duration::from_secs(60)), tokio::time::sleep(Duration::from_millis(50)))
            .await?;
        writer.release().await?;
    }
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}
