//! Times `dlock`'s locks on servers that run.

use std::error::Error;
use std::time::Duration;

use dlock::redis::Waiting;
use dlock::{AnyBackend, Backend, Instant, Lock, LockKey, Options, Runtime, TokioRuntime};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinSet;

use super::{Configuration, Times};
use crate::place::Place;

/// The error that stopped a measurement.
pub(super) type Stopped = Box<dyn Error + Send + Sync>;

/// The timeout of an acquire of a free lock.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

type Locks = Lock<AnyBackend<TokioRuntime>>;

/// Times the acquires of one client, and counts those of many.
pub(super) fn measure(configuration: &Configuration, place: &Place) -> Result<Times, Stopped> {
    let ttl = configuration.ttl.0;
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let backend = place.backend(ttl, Waiting::default(), TokioRuntime::new(Handle::current()))?;
        let lock = Lock::new(backend, Options::new(ttl))?;
        // Opens the connection and the session, and loads the scripts.
        section(&lock, &LockKey::new("price", "warm-up")?).await?;
        let (acquires_ms, alone_per_second) = alone(&lock, configuration.operations).await?;
        let together_per_second = together(&lock, configuration.tasks, configuration.lasts.0).await?;
        Ok(Times { acquires_ms, alone_per_second, together_per_second })
    })
}

/// Returns the latencies of acquires, and how many there were a second, each with its release.
async fn alone(lock: &Locks, operations: u32) -> Result<(Vec<f64>, f64), Stopped> {
    let runtime = lock.backend().runtime();
    let key = LockKey::new("price", "alone")?;
    let (begun, mut latencies) = (runtime.now(), Vec::new());
    for _ in 0..operations {
        latencies.push(section(lock, &key).await?.as_secs_f64() * 1e3);
    }
    let elapsed = runtime.now().saturating_since(begun);
    Ok((latencies, f64::from(operations) / elapsed.as_secs_f64()))
}

/// Returns the number of acquires a second, each with its release, of tasks that each have a key.
async fn together(lock: &Locks, tasks: u32, lasts: Duration) -> Result<f64, Stopped> {
    let runtime = lock.backend().runtime().clone();
    let begun = runtime.now();
    let mut running = JoinSet::new();
    for task in 0..tasks {
        running.spawn(repeat(lock.clone(), LockKey::new("price", &task.to_string())?, begun + lasts));
    }
    let mut count = 0;
    while let Some(ended) = running.join_next().await {
        count += ended??;
    }
    Ok(f64::from(count) / runtime.now().saturating_since(begun).as_secs_f64())
}

async fn repeat(lock: Locks, key: LockKey, end: Instant) -> Result<u32, Stopped> {
    let mut count = 0;
    while lock.backend().runtime().now() < end {
        section(&lock, &key).await?;
        count += 1;
    }
    Ok(count)
}

/// Acquires and releases; returns the time of the acquire.
async fn section(lock: &Locks, key: &LockKey) -> Result<Duration, Stopped> {
    let runtime = lock.backend().runtime();
    let called = runtime.now();
    let handle = lock.acquire(key, called + ACQUIRE_TIMEOUT).await?;
    let took = runtime.now().saturating_since(called);
    handle.release().await?;
    Ok(took)
}
