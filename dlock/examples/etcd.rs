//! etcd: waiters are served in the order of their arrival.
//!
//! Run it: `cargo run --example etcd --features etcd -- etcd://127.0.0.1:2379`.

use std::time::Duration;

use dlock::{Cap, ConnectOptions, Lock, LockKey, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "etcd://127.0.0.1:2379".to_owned());
    let mut servers = ConnectOptions::default();
    // If this process dies, its locks and its places in queues end after at most this time.
    servers.session_ttl = Some(Duration::from_secs(15));
    let lock = Lock::connect_with(&url, Options::new(Duration::from_secs(10)), servers).await?;
    let key = LockKey::new("ledger", "2026")?;
    for entry in 1..=3 {
        let handle = lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await?;
        let work = async { println!("writes entry {entry}, with token {}", handle.fence()) };
        handle.while_held(Cap(Duration::from_secs(60)), work).await?;
        handle.release().await?;
    }
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}
