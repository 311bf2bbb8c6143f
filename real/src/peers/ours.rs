//! Our own locks as a peer: an ordinary user of `dlock` on a runtime of one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dlock::redis::{Queue, Waiting};
use dlock::tls::TlsOptions;
use dlock::{AcquireError, Backend, Instant, Lock, LockKey, Options, Runtime};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::PeerError;
use super::jobs;
use super::slice::{Job, Peer, Scenario, Slice, Stopped, WRITES, nanos};
use crate::acquire::{Acquire, WithToken, WithoutToken};
use crate::place::Place;
use crate::systems::System;
use crate::timer;
use dlock::TokioRuntime;

/// The timeout of an acquire of a free lock.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// A peer on one of our systems.
pub(super) struct Ours {
    pub(super) name: &'static str,
    pub(super) system: System,
    pub(super) servers: Vec<String>,
    /// The roots to trust, if it speaks TLS (with Redis).
    pub(super) tls_roots: Option<String>,
    /// The time for which its streams poll for an answer before its thread sleeps.
    pub(super) busy_poll: Duration,
    /// True if its requests demand a fencing token, where nobody contends.
    pub(super) fenced: bool,
}

impl Peer for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        let failed = |error: String| PeerError::Failed { name: self.name, what: error };
        let executor = Builder::new_current_thread().enable_all().build();
        let executor = executor.map_err(|error| failed(error.to_string()))?;
        executor.block_on(self.slice(job)).map_err(|error| failed(error.to_string()))
    }
}

impl Ours {
    async fn slice(&self, job: &Job) -> Result<Slice, Stopped> {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current()).polling_busily(self.busy_poll);
        let mut place = Place::new(self.system, self.servers.clone());
        place.tls = self.tls_roots.clone().map(|roots| {
            let mut tls = TlsOptions::default();
            tls.roots = Some(roots);
            tls
        });
        if matches!(job.scenario, Scenario::Claim | Scenario::Drain) {
            let queue = Queue::new(place.redis(runtime)?, LockKey::new(&job.name, "0")?);
            return jobs::on_redis(queue, job).await;
        }
        run(place.backend(job.ttl(), Waiting::default(), runtime)?, job, self.fenced).await
    }
}

async fn run<B: Backend<Runtime = TokioRuntime>>(
    backend: B,
    job: &Job,
    fenced: bool,
) -> Result<Slice, Stopped> {
    let mut options = Options::new(job.ttl());
    if matches!(job.scenario, Scenario::Permit | Scenario::Crowd) {
        options.permits = u32::try_from(job.permits)?;
    }
    options.readers = matches!(job.scenario, Scenario::Read | Scenario::Mixed);
    let lock = Lock::new(backend, options)?;
    let runtime = lock.backend().runtime().clone();
    // Opens the connection and the session, and loads the scripts.
    let warm = LockKey::new(&job.name, "warm-up")?;
    lock.acquire(&warm, runtime.now() + ACQUIRE_TIMEOUT).await?.release().await?;
    match fenced {
        true => measure::<B, WithToken>(&lock, job).await,
        false => measure::<B, WithoutToken>(&lock, job).await,
    }
}

async fn measure<B: Backend, K: Acquire<B>>(lock: &Lock<B>, job: &Job) -> Result<Slice, Stopped> {
    match job.scenario {
        Scenario::Hot | Scenario::Crowd | Scenario::Mixed => hot(lock, job).await,
        Scenario::Space | Scenario::Take => space::<B, K>(lock, job).await,
        Scenario::Nested => nested(lock, job).await,
        Scenario::Several => several(lock, job).await,
        _ => uncontended::<B, K>(lock, job).await,
    }
}

async fn uncontended<B: Backend, K: Acquire<B>>(lock: &Lock<B>, job: &Job) -> Result<Slice, Stopped> {
    let runtime = lock.backend().runtime();
    let key = LockKey::new(&job.name, "0")?;
    let begun = runtime.now();
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    for _ in 0..job.operations {
        let called = runtime.now();
        let is_shared = job.scenario == Scenario::Read;
        let handle = K::acquire(lock, &key, is_shared, called + ACQUIRE_TIMEOUT).await?;
        let granted = runtime.now();
        handle.release().await?;
        slice.acquire_ns.push(nanos(granted.saturating_since(called)));
        slice.release_ns.push(nanos(runtime.now().saturating_since(granted)));
    }
    slice.elapsed_ns = nanos(runtime.now().saturating_since(begun));
    Ok(slice)
}

/// Acquires the lock twice in one scope, and leaves both sections, repeatedly.
async fn nested<B: Backend>(lock: &Lock<B>, job: &Job) -> Result<Slice, Stopped> {
    let (runtime, scope) = (lock.backend().runtime(), lock.scope());
    let key = LockKey::new(&job.name, "0")?;
    let begun = runtime.now();
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    for _ in 0..job.operations {
        let called = runtime.now();
        let outer = scope.acquire(&key, called + ACQUIRE_TIMEOUT).await?;
        let inner = scope.acquire(&key, called + ACQUIRE_TIMEOUT).await?;
        let granted = runtime.now();
        inner.leave().await?;
        outer.leave().await?;
        slice.acquire_ns.push(nanos(granted.saturating_since(called)));
        slice.release_ns.push(nanos(runtime.now().saturating_since(granted)));
    }
    slice.elapsed_ns = nanos(runtime.now().saturating_since(begun));
    Ok(slice)
}

/// Acquires several keys at once and releases them, repeatedly.
async fn several<B: Backend>(lock: &Lock<B>, job: &Job) -> Result<Slice, Stopped> {
    let runtime = lock.backend().runtime();
    let keys = (0..job.keys).map(|number| LockKey::new(&job.name, &number.to_string()));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let begun = runtime.now();
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    for _ in 0..job.operations {
        let called = runtime.now();
        let handles = lock.acquire_all(&keys, called + ACQUIRE_TIMEOUT).await?;
        let granted = runtime.now();
        handles.release().await?;
        slice.acquire_ns.push(nanos(granted.saturating_since(called)));
        slice.release_ns.push(nanos(runtime.now().saturating_since(granted)));
    }
    slice.elapsed_ns = nanos(runtime.now().saturating_since(begun));
    Ok(slice)
}

async fn hot<B: Backend>(lock: &Lock<B>, job: &Job) -> Result<Slice, Stopped> {
    let begun = lock.backend().runtime().now();
    let end = begun + job.lasts();
    let key = LockKey::new(&job.name, "0")?;
    let mut contenders = JoinSet::new();
    for number in 0..job.contenders {
        let turns = Turns { work: job.work(), begun, end, number, reads: job.scenario == Scenario::Mixed };
        contenders.spawn(contend(lock.clone(), key.clone(), turns));
    }
    let mut all = Slice::default();
    while let Some(ended) = contenders.join_next().await {
        all.join(ended??);
    }
    Ok(all)
}

/// The turns of a contender.
#[derive(Clone, Copy)]
struct Turns {
    work: Duration,
    begun: Instant,
    end: Instant,
    /// Its number: contenders write in different turns.
    number: u64,
    /// True if it reads in most turns.
    reads: bool,
}

/// Acquires, works, releases, and works without the lock, until the end: after its release, a contender
/// leaves the lock to the others for a while. The slice lasts until its last release.
async fn contend<B: Backend>(lock: Lock<B>, key: LockKey, turns: Turns) -> Result<Slice, Stopped> {
    let Turns { work, begun, end, number, reads } = turns;
    let runtime = lock.backend().runtime();
    let mut slice = Slice::default();
    loop {
        let called = runtime.now();
        let is_shared = reads && !(number + slice.completed).is_multiple_of(WRITES);
        let handle = match WithToken::acquire(&lock, &key, is_shared, end).await {
            Ok(handle) => handle,
            Err(AcquireError::Taken { .. } | AcquireError::DeadlinePassed) => return Ok(slice),
            // A request cut off by the end.
            Err(AcquireError::Unavailable(_)) if runtime.now() >= end => return Ok(slice),
            Err(error) => return Err(error.into()),
        };
        let granted = runtime.now();
        timer::sleep(work).await;
        let before = runtime.now();
        handle.release().await?;
        let ended = runtime.now();
        slice.acquire_ns.push(nanos(granted.saturating_since(called)));
        slice.release_ns.push(nanos(ended.saturating_since(before)));
        slice.completed += 1;
        slice.elapsed_ns = nanos(ended.saturating_since(begun));
        runtime.sleep_until(ended + work).await;
    }
}

async fn space<B: Backend, K: Acquire<B>>(lock: &Lock<B>, job: &Job) -> Result<Slice, Stopped> {
    let runtime = lock.backend().runtime();
    let count = Arc::new(AtomicU64::new(0));
    let begun = runtime.now();
    let end = begun + job.lasts();
    let takes = (job.scenario == Scenario::Take).then(|| job.takes());
    let mut tasks = JoinSet::new();
    for _ in 0..job.contenders {
        let (lock, name, count) = (lock.clone(), job.name.clone(), Arc::clone(&count));
        tasks.spawn(async move {
            let runtime = lock.backend().runtime();
            while takes.is_some() || runtime.now() < end {
                let number = count.fetch_add(1, Ordering::Relaxed);
                if takes.is_some_and(|takes| number >= takes) {
                    break;
                }
                let key = LockKey::new(&name, &number.to_string())?;
                let handle = K::acquire(&lock, &key, false, runtime.now() + ACQUIRE_TIMEOUT).await?;
                match takes {
                    Some(_) => handle.leave(),
                    None => _ = handle.release().await?,
                }
            }
            Ok::<_, Stopped>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let elapsed_ns = nanos(runtime.now().saturating_since(begun));
    let completed = takes.unwrap_or_else(|| count.load(Ordering::Relaxed));
    Ok(Slice { completed, elapsed_ns, ..Slice::default() })
}
