//! A world for tests: one thread, a clock that jumps to the next timer, and byte streams in memory.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

pub mod backend;
pub mod observe;
#[cfg(feature = "redis")]
pub mod redis;
pub mod server;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use dlock::{Instant, LockKey, Runtime};
use tokio::io::DuplexStream;

/// Returns a duration of `millis` milliseconds.
pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns the key that most tests lock.
pub fn key() -> LockKey {
    LockKey::new("orders", "42").unwrap()
}

/// A runtime whose clock advances only when nothing can run.
#[derive(Clone, Default)]
pub struct World(Arc<Inner>);

#[derive(Default)]
struct Inner {
    now: AtomicU64,
    /// The time up to which timers have fired. They fire only when nothing else can run, as on a busy
    /// runtime.
    fired: AtomicU64,
    drawn: AtomicU64,
    timers: Mutex<BTreeMap<(u64, u64), Waker>>,
    tasks: Mutex<Vec<Arc<Task>>>,
    server: Mutex<Option<server::Server>>,
}

struct Task {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    woken: AtomicBool,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
    }
}

impl World {
    /// Returns a world with a server that answers all connections.
    pub fn with_server() -> (Self, server::Server) {
        let world = Self::default();
        let server = server::Server::new(world.clone());
        *world.0.server.lock().unwrap() = Some(server.clone());
        (world, server)
    }

    /// Runs `future` to its end, with all tasks beside it; returns its output.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let main = Arc::new(Task { future: Mutex::new(None), woken: AtomicBool::new(true) });
        let waker = Waker::from(Arc::clone(&main));
        loop {
            if main.woken.swap(false, Ordering::SeqCst)
                && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return output;
            }
            if !self.run_tasks() && !main.woken.load(Ordering::SeqCst) {
                assert!(self.next_timer(), "everything waits and no timer is set: a deadlock");
                self.fire();
            }
        }
    }

    /// Runs the tasks until `time` has passed.
    pub fn pass(&self, time: Duration) {
        self.run(self.sleep_until(self.now() + time));
    }

    /// Advances the clock by `time` at once, as if the process had been paused: nothing runs meanwhile, and
    /// timers fire only after everything that can run now.
    pub fn pause(&self, time: Duration) {
        self.0.now.fetch_add(u64::try_from(time.as_nanos()).unwrap(), Ordering::SeqCst);
    }

    /// Returns the number of tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.0.tasks.lock().unwrap().len()
    }

    fn run_tasks(&self) -> bool {
        let tasks = self.0.tasks.lock().unwrap().clone();
        let mut ran = false;
        for task in tasks.iter().filter(|task| task.woken.swap(false, Ordering::SeqCst)) {
            ran = true;
            let Some(mut future) = task.future.lock().unwrap().take() else { continue };
            let waker = Waker::from(Arc::clone(task));
            if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                *task.future.lock().unwrap() = Some(future);
            }
        }
        self.0.tasks.lock().unwrap().retain(|task| task.future.lock().unwrap().is_some());
        ran
    }

    fn next_timer(&self) -> bool {
        let next = self.0.timers.lock().unwrap().keys().next().map(|&(at, _)| at);
        if let Some(at) = next {
            self.0.now.fetch_max(at, Ordering::SeqCst);
        }
        next.is_some()
    }

    fn fire(&self) {
        self.0.fired.store(self.now().as_nanos(), Ordering::SeqCst);
        let mut timers = self.0.timers.lock().unwrap();
        let later = timers.split_off(&(self.now().as_nanos() + 1, 0));
        for waker in std::mem::replace(&mut *timers, later).into_values() {
            waker.wake();
        }
    }
}

impl Runtime for World {
    type Stream = DuplexStream;

    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.now.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send {
        let world = self.clone();
        let id = self.0.drawn.fetch_add(1, Ordering::SeqCst);
        std::future::poll_fn(move |cx| {
            if world.0.fired.load(Ordering::SeqCst) >= deadline.as_nanos() {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            world.0.timers.lock().unwrap().insert((deadline.as_nanos(), id), waker);
            Poll::Pending
        })
    }

    async fn connect(&self, _address: &str) -> io::Result<DuplexStream> {
        let server = self.0.server.lock().unwrap().clone();
        match server {
            Some(server) => server.accept().await,
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let future = Mutex::new(Some(Box::pin(task) as Pin<Box<dyn Future<Output = ()> + Send>>));
        self.0.tasks.lock().unwrap().push(Arc::new(Task { future, woken: AtomicBool::new(true) }));
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            let mut x = self.0.drawn.fetch_add(1, Ordering::SeqCst).wrapping_add(0x9e37_79b9_7f4a_7c15);
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = x.to_le_bytes()[7];
        }
    }
}
