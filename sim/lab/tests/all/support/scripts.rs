//! Scripts: tests that control a run step by step and check the answers themselves.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use dlock::{AcquireError, Backend, Handle, Instant, Lock, LockKey, Options, Runtime};
use sim::world::runtime::SimRuntime;
use sim::{Control, Process, Report, RunError, Sim};

/// The longest simulated time of a test.
const LIMIT: Duration = Duration::from_secs(3600);

/// Runs `script` in the world that `build` makes; each segment takes `latency`. Returns the report and the
/// script's output.
pub fn run_script<T: Send, F: Future<Output = T>>(
    latency: Duration,
    build: impl FnOnce(&mut Sim),
    script: impl FnOnce(Control) -> F + Send,
) -> (Report, T) {
    let mut sim = Sim::new(1);
    // The script has its own assertions.
    sim.latency(latency, latency).limit(LIMIT).verdicts(&[]);
    build(&mut sim);
    match sim.run_script(script) {
        Ok(outcome) => outcome,
        Err(RunError::Panicked { message, location, .. }) => panic!("at {location}: {message}"),
        Err(error) => panic!("{error}"),
    }
}

/// Returns the key that most tests lock.
pub fn key() -> LockKey {
    LockKey::new("orders", "42").unwrap()
}

/// A client in a process of the world, and its lock.
pub struct Member<B: Backend> {
    pub process: Process,
    pub runtime: SimRuntime,
    pub lock: Lock<B>,
}

impl<B: Backend> Clone for Member<B> {
    fn clone(&self) -> Self {
        let (process, runtime) = (self.process.clone(), self.runtime.clone());
        Self { process, runtime, lock: self.lock.clone() }
    }
}

impl<B: Backend<Runtime = SimRuntime>> Member<B> {
    pub fn new(process: &Process, backend: B, options: Options) -> Self {
        let lock = Lock::new(backend, options).unwrap();
        Self { process: process.clone(), runtime: process.runtime(), lock }
    }

    pub fn name(&self) -> &str {
        self.process.name()
    }

    pub fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Returns the deadline of an acquire with the timeout `time`.
    pub fn within(&self, time: Duration) -> Instant {
        self.now() + time
    }

    /// Acquires in a task of its process, with the timeout `time`.
    pub fn spawn_acquire(&self, key: &LockKey, time: Duration) -> Acquiring<B> {
        let (lock, key, deadline) = (self.lock.clone(), key.clone(), self.within(time));
        let result = Arc::new(Mutex::new(None));
        let found = Arc::clone(&result);
        self.process.spawn(async move {
            let acquired = lock.acquire(&key, deadline).await;
            *found.lock().unwrap() = Some(acquired);
        });
        Acquiring(result)
    }
}

/// An acquire in progress in a task.
pub struct Acquiring<B: Backend>(Arc<Mutex<Option<Acquired<B>>>>);

type Acquired<B> = Result<Handle<B>, AcquireError>;

impl<B: Backend> Acquiring<B> {
    pub fn is_over(&self) -> bool {
        self.0.lock().unwrap().is_some()
    }

    /// Returns the handle if the acquire has ended; panics if it failed.
    pub fn granted(&self) -> Option<Handle<B>> {
        self.0.lock().unwrap().take().map(Result::unwrap)
    }

    /// Waits for the end of the acquire; returns its result.
    pub async fn wait(self, control: &Control) -> Acquired<B> {
        loop {
            if let Some(result) = self.0.lock().unwrap().take() {
                return result;
            }
            control.sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Polls `future` until it is pending for the `nth` time, and drops it after `time`, in which its requests go
/// on. Returns its output if it ended before.
pub async fn drop_when_pending<F: Future>(
    control: &Control,
    nth: usize,
    time: Duration,
    future: F,
) -> Option<F::Output> {
    let (mut future, mut pending) = (pin!(future), 0);
    let ended = std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            pending += 1;
            if pending >= nth { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await;
    if ended.is_none() {
        control.sleep(time).await;
    }
    ended
}

/// Records the points that servers pass from now on, each as (process, point).
pub fn points(control: &Control) -> Arc<Mutex<Vec<(String, String)>>> {
    let points = Arc::new(Mutex::new(Vec::new()));
    let passed = Arc::clone(&points);
    control.hear_points(move |process, point| {
        passed.lock().unwrap().push((process.to_owned(), point.to_owned()));
    });
    points
}
