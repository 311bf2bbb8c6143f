//! A worker of a job queue: several processes share the jobs, and each job is done under its lock. The lock
//! keeps two workers from doing the same job at once; that a job is done is written where the job is, with
//! the token, since a worker may pause past its lease.
//!
//! Run it in two terminals: `cargo run --example queue_worker -- redis://127.0.0.1:6379`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a live program")]

use std::time::Duration;

use dlock::{AnyBackend, Cap, FencingToken, Lock, LockKey, Options, TokioRuntime, TryAcquireError};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let lock = Lock::connect(&url, Options::new(Duration::from_secs(5))).await?;
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        done = work(&lock) => println!("{} jobs done", done?),
        _ = terminated.recv() => println!("told to end"),
    }
    let closed = lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    println!("released {}, unconfirmed {}", closed.released, closed.unconfirmed);
    Ok(())
}

/// Takes each job that no other worker has.
async fn work(lock: &Lock<AnyBackend<TokioRuntime>>) -> Result<u32, Box<dyn std::error::Error>> {
    let mut done = 0;
    for job in 1..=10 {
        let key = LockKey::new("jobs", &job.to_string())?;
        let handle = match lock.try_acquire(&key).await {
            Ok(handle) => handle,
            Err(TryAcquireError::Taken { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        // A worker that dies here leaves its job to another one, once the lease has ended.
        match handle.while_held(Cap(Duration::from_secs(60)), run(job, handle.fence())).await {
            Ok(()) => done += 1,
            Err(lost) => eprintln!("job {job} is given up: {lost}"),
        }
        // The others must not do it again at once.
        handle.leave();
    }
    Ok(done)
}

/// The job: `UPDATE jobs SET done = true, fence = $token WHERE id = $job AND fence < $token`, for example.
async fn run(job: u32, token: FencingToken) {
    tokio::time::sleep(Duration::from_millis(300)).await;
    println!("job {job} is done, with token {token}");
}
