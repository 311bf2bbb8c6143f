//! Fills a Redis by the lock of `dlock`: each lock is an acquire, whose handle is left to its TTL.

use std::time::Duration;

use dlock::redis::{Redis, RedisOptions, TokenSource};
use dlock::{Lock, LockKey, Options, TokioRuntime};
use futures_util::{StreamExt, TryStreamExt, stream};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{BATCH, Counters, FILLED, Fill, FillError};

/// The acquires in flight: their requests share calls.
const AT_ONCE: usize = 1000;

/// A Redis that resizes a hash table of millions does not answer for a while.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(super) async fn fill(
    runtime: &TokioRuntime,
    fill: &Fill,
    on_batch: &impl Fn(u64),
) -> Result<(), FillError> {
    let mut servers = RedisOptions::default();
    if fill.counters == Counters::Slots {
        servers.tokens = TokenSource::Shared;
    }
    let mut options = Options::new(fill.ttl);
    options.request_timeout = TIMEOUT;
    let lock = Lock::new(Redis::new(runtime.clone(), &fill.server, servers)?, options)?;
    let mut random = ChaCha8Rng::seed_from_u64(fill.seed);
    let spread = u64::try_from(fill.spread.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
    let mut numbers = 0..fill.keys;
    while !numbers.is_empty() {
        let next: Vec<_> = numbers
            .by_ref()
            .take(BATCH as usize * 20)
            .map(|number| (number, fill.ttl + Duration::from_millis(random.next_u64() % spread)))
            .collect();
        let made = next.len() as u64;
        let acquires = next.into_iter().map(|(number, ttl)| acquire(&lock, fill, number, ttl));
        stream::iter(acquires)
            .buffer_unordered(AT_ONCE)
            .try_for_each(|()| std::future::ready(Ok(())))
            .await?;
        metrics::counter!(FILLED).increment(made);
        on_batch(made);
    }
    Ok(())
}

async fn acquire(
    lock: &Lock<Redis<TokioRuntime>>,
    fill: &Fill,
    number: u64,
    ttl: Duration,
) -> Result<(), FillError> {
    let key = LockKey::new(&fill.key, &number.to_string())?;
    let (request, deadline) = (lock.request(&key).ttl(ttl), lock.deadline_in(TIMEOUT));
    match fill.counters {
        Counters::None => request.without_token().acquire(deadline).await?.leave(),
        _ => request.acquire(deadline).await?.leave(),
    }
    Ok(())
}
