//! A loop like that of a leader: one of several processes acts, and another takes over when it ends or stands
//! still. The token is the term: what the leader writes must carry it, since a leader that pauses does not
//! know that it was replaced.
//!
//! Run it in two terminals: `cargo run --example leader -- redis://127.0.0.1:6379`, and stop one.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a live program")]

use std::time::Duration;

use dlock::{AcquireError, AnyBackend, Cap, FencingToken, Lock, LockKey, Options, TokioRuntime};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let lock = Lock::connect(&url, Options::new(Duration::from_secs(3))).await?;
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = lead(&lock) => ended?,
        _ = terminated.recv() => println!("told to end"),
    }
    // The next leader need not wait for the end of the lease.
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}

/// Campaigns, leads until the lease is lost, and campaigns again.
async fn lead(lock: &Lock<AnyBackend<TokioRuntime>>) -> Result<(), Box<dyn std::error::Error>> {
    let key = LockKey::new("leader", "scheduler")?;
    loop {
        let handle = match lock.acquire(&key, lock.deadline_in(Duration::from_secs(60))).await {
            Ok(handle) => handle,
            Err(AcquireError::Refused(error)) => return Err(error.into()),
            // Another one leads.
            Err(_) => continue,
        };
        // A term ends after an hour at the latest, so that a leader that hangs is replaced.
        let lost = handle.while_held(Cap(Duration::from_secs(3600)), act(handle.fence())).await;
        println!("leads no more: {lost:?}");
    }
}

/// The work of a leader, once a second.
async fn act(term: FencingToken) {
    loop {
        println!("leads in term {term}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
