//! The surroundings of servers and clients under test: tasks that run until all of them wait, and a clock
//! that stands still until the harness sets it. The same input gives the same run.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, Stream};

/// The most polls between two settings of the clock. Code that exceeds it has no end.
const POLLS_MAX: usize = 1_000_000;

/// The clock's origin: a day, so that code can look back in time.
const ORIGIN_NANOS: u64 = 86_400_000_000_000;

/// A clock and a queue of new tasks. Clones are the same world.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    nanos: AtomicU64,
    sleepers: Mutex<Sleepers>,
    spawned: Mutex<Vec<BoxFuture<'static, ()>>>,
}

/// The tasks that wait for the clock, by their deadline and a number.
#[derive(Default)]
struct Sleepers {
    wakers: BTreeMap<(u64, u64), Waker>,
    count: u64,
}

/// Runs the tasks of a world. Dropping it drops all of them.
pub struct Executor {
    world: World,
    tasks: FuturesUnordered<BoxFuture<'static, ()>>,
}

/// Notes that a task can go on.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl World {
    /// Returns a world without tasks, whose clock reads `nanos`.
    fn at(nanos: u64) -> Self {
        let nanos = AtomicU64::new(nanos);
        Self(Arc::new(Inner { nanos, sleepers: Mutex::default(), spawned: Mutex::default() }))
    }

    /// Returns the time in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.0.nanos.load(Ordering::Relaxed)
    }

    /// Adds a task.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.0.spawned).push(Box::pin(task));
    }

    /// Completes once the clock reads `deadline` or more.
    pub fn sleep_until(&self, deadline: u64) -> impl Future<Output = ()> + Send + use<> {
        Sleep { world: self.clone(), deadline, place: None }
    }
}

impl Executor {
    /// Returns an executor of a new world.
    pub fn new() -> Self {
        Self::at(ORIGIN_NANOS)
    }

    /// Returns an executor of a new world whose clock reads `nanos`.
    pub fn at(nanos: u64) -> Self {
        Self { world: World::at(nanos), tasks: FuturesUnordered::new() }
    }

    /// Returns its world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Runs until every task waits.
    ///
    /// # Panics
    ///
    /// If that takes more than a million polls.
    pub fn settle(&mut self) {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        let mut polls = 0;
        loop {
            let spawned = std::mem::take(&mut *lock(&self.world.0.spawned));
            if spawned.is_empty() && !flag.0.swap(false, Ordering::Relaxed) {
                return;
            }
            self.tasks.extend(spawned);
            while let Poll::Ready(Some(())) =
                Pin::new(&mut self.tasks).poll_next(&mut Context::from_waker(&waker))
            {
                polls += 1;
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "the tasks go on without an end while the clock stands still");
        }
    }

    /// Runs until every task waits, then sets the clock forward by `duration` in steps from one sleeper to
    /// the next, at most `wakes_max` of them.
    pub fn advance(&mut self, duration: Duration, wakes_max: usize) {
        self.settle();
        let end = self.world.nanos().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        for _ in 0..wakes_max {
            let Some(waker) = self.next_sleeper(end) else { break };
            waker.wake();
            self.settle();
        }
        self.world.0.nanos.fetch_max(end, Ordering::Relaxed);
    }

    /// Runs `future` and the tasks until it completes. Returns `None` if it still waits after `duration`.
    pub fn block_on<T>(&mut self, future: impl Future<Output = T>, duration: Duration) -> Option<T> {
        let mut future = pin!(future);
        let end = self.world.nanos().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        loop {
            // Polled whenever all tasks wait, so that no waker of its own is needed.
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return Some(output);
            }
            self.settle();
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return Some(output);
            }
            self.settle();
            self.next_sleeper(end)?.wake();
        }
    }

    /// Sets the clock to the earliest deadline up to `end`, and returns its sleeper.
    fn next_sleeper(&mut self, end: u64) -> Option<Waker> {
        let mut sleepers = lock(&self.world.0.sleepers);
        let entry = sleepers.wakers.first_entry().filter(|entry| entry.key().0 <= end)?;
        self.world.0.nanos.fetch_max(entry.key().0, Ordering::Relaxed);
        Some(entry.remove())
    }
}

impl Default for Executor {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.tasks.clear();
        // A task that ends may spawn another, and each of them holds the world.
        loop {
            let spawned = std::mem::take(&mut *lock(&self.world.0.spawned));
            if spawned.is_empty() {
                return;
            }
        }
    }
}

struct Sleep {
    world: World,
    deadline: u64,
    /// Its key among the sleepers.
    place: Option<(u64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.world.nanos() >= self.deadline {
            return Poll::Ready(());
        }
        let inner = Arc::clone(&self.world.0);
        let mut sleepers = lock(&inner.sleepers);
        sleepers.count += 1;
        let new = (self.deadline, sleepers.count);
        let place = *self.place.get_or_insert(new);
        sleepers.wakers.insert(place, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let waker = lock(&self.world.0.sleepers).wakers.remove(&place);
            drop(waker);
        }
    }
}

/// Locks `mutex`. No code panics while it holds one: a panic ends the program.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
