//! One Redis: holds a lock for the time of some work.
//!
//! Run it: `cargo run --example redis -- redis://127.0.0.1:6379` (`rediss://` for TLS).

use std::time::Duration;

use dlock::redis::TokenSource;
use dlock::{Cap, ConnectOptions, Lock, LockKey, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let mut servers = ConnectOptions::default();
    // Tokens grow even if the server loses its counter, as long as its clock does not step back.
    servers.tokens = TokenSource::ServerTime;
    let lock = Lock::connect_with(&url, Options::new(Duration::from_secs(30)), servers).await?;
    let key = LockKey::new("report-export", "2026-11")?;
    let handle = lock.acquire(&key, lock.deadline_in(Duration::from_secs(10))).await?;
    let work = async { println!("exports the report, with token {}", handle.fence()) };
    handle.while_held(Cap(Duration::from_secs(600)), work).await?;
    handle.release().await?;
    Ok(())
}
