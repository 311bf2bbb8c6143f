//! The work of Redisson's clients: one that acquires and releases, and many that wait for each other.
#![allow(clippy::disallowed_methods, reason = "the yardstick is measured on the machine's own clock")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisResult, Script};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::peers::slice::{Job, Scenario, Slice, WRITES, nanos};
use crate::timer;

/// A lock or a semaphore. Clones share its connection.
pub(super) trait Algorithm: Clone + Send + 'static {
    /// Acquires it for `holder`. If others hold it, returns the longest time to wait before the next try.
    fn try_acquire(&mut self, holder: Holder) -> impl Future<Output = RedisResult<Option<Duration>>> + Send;

    /// Releases an acquire of `holder`.
    fn release(&mut self, holder: Holder) -> impl Future<Output = RedisResult<()>> + Send;

    /// Returns the channel of the messages about releases.
    fn channel(&self) -> &str;

    /// Returns the number of permits by which `message` opens the latch.
    fn opens(message: usize, latch: &Latch) -> usize;
}

/// A contender in one of its rounds.
#[derive(Clone, Copy)]
pub(super) struct Holder {
    pub(super) contender: u64,
    pub(super) round: u64,
    /// True if it only reads, under a lock of readers and a writer.
    pub(super) reads: bool,
}

/// The latch at which the contenders of a client wait: it has one permit for each that a message wakes.
pub(super) struct Latch {
    permits: Semaphore,
    waiting: AtomicUsize,
}

impl Latch {
    fn closed() -> Self {
        Self { permits: Semaphore::new(0), waiting: AtomicUsize::new(0) }
    }

    /// Returns the number of permits that nobody has taken.
    pub(super) fn available(&self) -> usize {
        self.permits.available_permits()
    }

    /// Returns the number of contenders that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    async fn wait(&self, at_most: Duration) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if let Ok(Ok(told)) = timeout(at_most, self.permits.acquire()).await {
            told.forget();
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Loads the scripts into the server.
pub(super) async fn load<const COUNT: usize>(
    connection: &mut MultiplexedConnection,
    scripts: [&str; COUNT],
) -> RedisResult<Arc<[Script; COUNT]>> {
    let scripts = scripts.map(Script::new);
    for script in &scripts {
        script.prepare_invoke().load_async(connection).await?;
    }
    Ok(Arc::new(scripts))
}

/// One client acquires and releases repeatedly; for [`Scenario::Nested`] one acquire inside another.
pub(super) async fn alone<A: Algorithm>(mut lock: A, job: &Job) -> RedisResult<Slice> {
    let depth = if job.scenario == Scenario::Nested { 2 } else { 1 };
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    let begun = Instant::now();
    for round in 0..job.operations {
        let holder = Holder { contender: 0, round, reads: job.scenario == Scenario::Read };
        let called = Instant::now();
        for _ in 0..depth {
            if lock.try_acquire(holder).await?.is_some() {
                return Err(io::Error::other("somebody else holds a lock of this client alone").into());
            }
        }
        let granted = Instant::now();
        for _ in 0..depth {
            lock.release(holder).await?;
        }
        slice.acquire_ns.push(nanos(granted - called));
        slice.release_ns.push(nanos(granted.elapsed()));
    }
    slice.elapsed_ns = nanos(begun.elapsed());
    Ok(slice)
}

/// Many contenders, each with work while it holds the lock and as long again without it.
pub(super) async fn together<A: Algorithm>(server: &str, lock: A, job: &Job) -> RedisResult<Slice> {
    let latch = Arc::new(Latch::closed());
    let listening = listen::<A>(server, lock.channel(), Arc::clone(&latch)).await?;
    let (begun, end) = (Instant::now(), Instant::now() + job.lasts());
    let turns = Turns { work: job.work(), begun, end, mixed: job.scenario == Scenario::Mixed };
    let mut contenders = JoinSet::new();
    for number in 0..job.contenders {
        contenders.spawn(contend(lock.clone(), Arc::clone(&latch), number, turns));
    }
    let mut all = Slice::default();
    while let Some(ended) = contenders.join_next().await {
        let slice = ended.map_err(|error| io::Error::other(error.to_string()))??;
        all.join(slice);
    }
    listening.abort();
    Ok(all)
}

/// Opens the latch at each message about a release.
async fn listen<A: Algorithm>(server: &str, channel: &str, latch: Arc<Latch>) -> RedisResult<JoinHandle<()>> {
    let mut messages = Client::open(format!("redis://{server}"))?.get_async_pubsub().await?;
    messages.subscribe(channel).await?;
    Ok(tokio::spawn(async move {
        let mut messages = messages.into_on_message();
        while let Some(message) = messages.next().await {
            let message: usize = message.get_payload().unwrap_or(1);
            latch.permits.add_permits(A::opens(message, &latch));
        }
    }))
}

/// The turns of a contender.
#[derive(Clone, Copy)]
struct Turns {
    work: Duration,
    begun: Instant,
    end: Instant,
    /// True if it reads in all rounds but one in [`WRITES`].
    mixed: bool,
}

/// Acquires, works, releases, and works without the lock, until the end.
async fn contend<A: Algorithm>(
    mut lock: A,
    latch: Arc<Latch>,
    contender: u64,
    turns: Turns,
) -> RedisResult<Slice> {
    let Turns { work, begun, end, mixed } = turns;
    let mut slice = Slice::default();
    for round in 0_u64.. {
        let reads = mixed && !(contender + round).is_multiple_of(WRITES);
        let holder = Holder { contender, round, reads };
        let called = Instant::now();
        if !acquire(&mut lock, &latch, holder, end).await? {
            break;
        }
        let granted = Instant::now();
        timer::sleep(work).await;
        let before = Instant::now();
        lock.release(holder).await?;
        slice.acquire_ns.push(nanos(granted - called));
        slice.release_ns.push(nanos(before.elapsed()));
        slice.completed += 1;
        slice.elapsed_ns = nanos(begun.elapsed());
        timer::sleep(work).await;
    }
    Ok(slice)
}

/// Acquires the lock, and returns true, unless `end` comes first.
async fn acquire<A: Algorithm>(
    lock: &mut A,
    latch: &Latch,
    holder: Holder,
    end: Instant,
) -> RedisResult<bool> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let Some(wait) = lock.try_acquire(holder).await? else { return Ok(true) };
        latch.wait(left.min(wait)).await;
    }
}
