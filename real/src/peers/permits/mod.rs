//! Redisson's expirable semaphore by its algorithm, through the redis crate: its scripts written anew, its
//! wait for a message or for the next end of a permit, whichever comes first. Without timeouts and retries.
//!
//! Source: Redisson, `RedissonPermitExpirableSemaphore`. Its permits have no fencing tokens, and their ends
//! are times of the clients' clocks.
#![allow(clippy::disallowed_methods, reason = "the yardstick is measured on the machine's own clock")]

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisResult, Script, cmd};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::PeerError;
use super::raw_redis::connect;
use super::slice::{Job, Peer, Scenario, Slice, nanos};
use crate::timer;

/// The peer's name.
pub(super) const NAME: &str = "Redisson's algorithm, redis crate";

/// The semaphore on one Redis.
pub(super) struct Redisson {
    pub(super) server: String,
}

impl Peer for Redisson {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        let failed = |what: String| PeerError::Failed { name: NAME, what };
        let executor = Builder::new_current_thread().enable_all().build();
        let executor = executor.map_err(|error| failed(error.to_string()))?;
        executor.block_on(self.measure(job)).map_err(|error| failed(error.to_string()))
    }
}

impl Redisson {
    async fn measure(&self, job: &Job) -> RedisResult<Slice> {
        let mut connection = connect(&self.server).await?;
        let permits = Permits {
            connection: connection.clone(),
            scripts: Arc::new([
                Script::new(include_str!("acquire.lua")),
                Script::new(include_str!("release.lua")),
            ]),
            keys: [format!("{{{}}}", job.name), format!("{{{}}}:timeout", job.name)],
            channel: format!("redisson_sc:{{{}}}", job.name),
            ttl: job.ttl(),
            freed: Arc::new(Semaphore::new(0)),
        };
        cmd("SET").arg(&permits.keys[0]).arg(job.permits).exec_async(&mut connection).await?;
        for script in permits.scripts.iter() {
            script.prepare_invoke().load_async(&mut connection).await?;
        }
        match job.scenario {
            Scenario::Crowd => self.crowd(&permits, job).await,
            _ => one(permits, job).await,
        }
    }

    async fn crowd(&self, permits: &Permits, job: &Job) -> RedisResult<Slice> {
        let mut messages = Client::open(format!("redis://{}", self.server))?.get_async_pubsub().await?;
        messages.subscribe(&permits.channel).await?;
        let freed = Arc::clone(&permits.freed);
        let listening = tokio::spawn(async move {
            let mut messages = messages.into_on_message();
            while let Some(message) = messages.next().await {
                let free: usize = message.get_payload().unwrap_or(1);
                // Wakes as many as there are permits, as Redisson's latch does.
                freed.add_permits(free.saturating_sub(freed.available_permits()));
            }
        });
        let (begun, end) = (Instant::now(), Instant::now() + job.lasts());
        let mut contenders = JoinSet::new();
        for number in 0..job.contenders {
            contenders.spawn(contend(permits.clone(), number, job.work(), begun, end));
        }
        let mut all = Slice::default();
        while let Some(ended) = contenders.join_next().await {
            let slice = ended.map_err(|error| std::io::Error::other(error.to_string()))??;
            all.join(slice);
        }
        listening.abort();
        Ok(all)
    }
}

/// One semaphore. Clones share its connection.
#[derive(Clone)]
struct Permits {
    connection: MultiplexedConnection,
    scripts: Arc<[Script; 2]>,
    keys: [String; 2],
    channel: String,
    ttl: Duration,
    /// One permit for each that a message has told of.
    freed: Arc<Semaphore>,
}

impl Permits {
    /// Takes the permit `id`; returns its next end in milliseconds of Unix time if all are taken.
    async fn try_acquire(&mut self, id: &str) -> RedisResult<Result<(), Option<u64>>> {
        let now = unix_millis();
        let end = now + self.ttl.as_millis() as u64;
        let [count, taken] = &self.keys;
        let mut call = self.scripts[0].key(count);
        call.key(taken).arg(id).arg(end).arg(now).arg(&self.channel);
        let answer: Option<String> = call.invoke_async(&mut self.connection).await?;
        Ok(match answer.as_deref() {
            Some("OK") => Ok(()),
            other => Err(other.and_then(|end| end.parse().ok())),
        })
    }

    /// Takes the permit `id`, unless `end` comes first.
    async fn acquire(&mut self, id: &str, end: Instant) -> RedisResult<bool> {
        loop {
            let wait = end.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return Ok(false);
            }
            let Err(next) = self.try_acquire(id).await? else { return Ok(true) };
            let until_next =
                next.map_or(self.ttl, |next| Duration::from_millis(next.saturating_sub(unix_millis())));
            if let Ok(Ok(told)) = timeout(wait.min(until_next), self.freed.acquire()).await {
                told.forget();
            }
        }
    }

    async fn release(&mut self, id: &str) -> RedisResult<()> {
        let [count, taken] = &self.keys;
        let mut call = self.scripts[1].key(count);
        call.key(taken).arg(id).arg(unix_millis()).arg(&self.channel);
        call.invoke_async::<u64>(&mut self.connection).await.map(drop)
    }
}

/// One client takes a permit and gives it back, repeatedly.
async fn one(mut permits: Permits, job: &Job) -> RedisResult<Slice> {
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    let begun = Instant::now();
    let forever = begun + Duration::from_secs(3600);
    for number in 0..job.operations {
        let id = format!("{number:032x}");
        let called = Instant::now();
        permits.acquire(&id, forever).await?;
        let granted = Instant::now();
        permits.release(&id).await?;
        slice.acquire_ns.push(nanos(granted - called));
        slice.release_ns.push(nanos(granted.elapsed()));
    }
    slice.elapsed_ns = nanos(begun.elapsed());
    Ok(slice)
}

/// Takes a permit, works, gives it back, and works without it, until `end`.
async fn contend(
    mut permits: Permits,
    number: u64,
    work: Duration,
    begun: Instant,
    end: Instant,
) -> RedisResult<Slice> {
    let mut slice = Slice::default();
    for round in 0_u64.. {
        let id = format!("{number:016x}{round:016x}");
        let called = Instant::now();
        if !permits.acquire(&id, end).await? {
            break;
        }
        let granted = Instant::now();
        timer::sleep(work).await;
        let before = Instant::now();
        permits.release(&id).await?;
        slice.acquire_ns.push(nanos(granted - called));
        slice.release_ns.push(nanos(before.elapsed()));
        slice.completed += 1;
        slice.elapsed_ns = nanos(begun.elapsed());
        timer::sleep(work).await;
    }
    Ok(slice)
}

fn unix_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
