//! Scripts: tests that do by hand what a schedule would do, and look at the answers themselves.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use dlock::{AcquireError, Backend, Handle, Instant, Lock, LockKey, Options, Runtime};
use sim::world::runtime::SimRuntime;
use sim::{Control, Process, Report, RunError, Sim};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(3600);

/// Runs `script` in the world that `build` makes, in which each segment takes `latency`. Returns what both
/// came to.
pub fn run_script<T: Send, F: Future<Output = T>>(
    latency: Duration,
    build: impl FnOnce(&mut Sim),
    script: impl FnOnce(Control) -> F + Send,
) -> (Report, T) {
    let mut sim = Sim::new(1);
    // The script judges by itself.
    sim.latency(latency, latency).limit(LIMIT).verdicts(&[]);
    build(&mut sim);
    match sim.run_script(script) {
        Ok(outcome) => outcome,
        Err(RunError::Panicked { message, location, .. }) => panic!("at {location}: {message}"),
        Err(error) => panic!("{error}"),
    }
}

/// The key that most tests lock.
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

    /// The deadline of an acquire that may wait for `time`.
    pub fn within(&self, time: Duration) -> Instant {
        self.now() + time
    }

    /// Acquires in a task of its process, for at most `time`.
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

/// An acquire that is under way in a task.
pub struct Acquiring<B: Backend>(Arc<Mutex<Option<Acquired<B>>>>);

type Acquired<B> = Result<Handle<B>, AcquireError>;

impl<B: Backend> Acquiring<B> {
    pub fn is_over(&self) -> bool {
        self.0.lock().unwrap().is_some()
    }

    /// The handle, if it has been granted one.
    pub fn granted(&self) -> Option<Handle<B>> {
        self.0.lock().unwrap().take().map(Result::unwrap)
    }

    /// Waits for its end, and returns what came of it.
    pub async fn wait(self, control: &Control) -> Acquired<B> {
        loop {
            if let Some(result) = self.0.lock().unwrap().take() {
                return result;
            }
            control.sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Polls `future` until it has been pending for the `nth` time, leaves it alone for `time`, in which what it
/// has begun goes on without it, and drops it. Returns its output if it ended before.
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

/// The points that servers pass from now on, with the names of their processes.
pub fn points(control: &Control) -> Arc<Mutex<Vec<(String, String)>>> {
    let points = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&points);
    control.hear_points(move |process, point| {
        heard.lock().unwrap().push((process.to_owned(), point.to_owned()));
    });
    points
}
