//! `tokio::runtime`: a runtime is the simulated process in which it is used.

mod builder;
mod handle;
mod id;
mod local;
mod metrics;
mod shutdown;

use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

#[doc(no_inline)]
pub use real_tokio::runtime::RuntimeFlavor;
use real_tokio::task::JoinHandle;

pub use self::builder::Builder;
pub use self::handle::{EnterGuard, Handle, TryCurrentError};
pub use self::id::Id;
pub use self::local::{LocalOptions, LocalRuntime};
pub use self::metrics::{RuntimeMetrics, worker_index};
pub use self::shutdown::is_rt_shutdown_err;
use crate::host;

/// A runtime: a handle of the simulated process. Outside of every process, each
/// [`block_on`](Runtime::block_on) is a world of its own.
#[derive(Debug)]
pub struct Runtime {
    /// `None` outside of every process.
    handle: Option<Handle>,
}

impl Runtime {
    /// Returns a runtime in the process of the caller.
    ///
    /// # Errors
    ///
    /// None.
    pub fn new() -> io::Result<Self> {
        Ok(here(Kind::MultiThread))
    }

    /// Returns the handle.
    ///
    /// # Panics
    ///
    /// Outside of a simulated process.
    #[track_caller]
    pub fn handle(&self) -> &Handle {
        match &self.handle {
            Some(handle) => handle,
            None => host::outside(),
        }
    }

    /// Runs a task.
    ///
    /// # Panics
    ///
    /// Outside of a simulated process.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle().spawn(future)
    }

    /// Runs code that blocks, in turns with the tasks.
    ///
    /// # Panics
    ///
    /// Outside of a simulated process.
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, func: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle().spawn_blocking(func)
    }

    /// Runs a future to its end. The caller waits, and other tasks run meanwhile.
    ///
    /// Outside of every process it makes a world with one process, `main`, and without faults, which ends
    /// with the future: so each function under `#[tokio::test]` is a world. `SEED=7` sets the world's seed.
    ///
    /// # Panics
    ///
    /// In a task, as tokio's own: it works in `sim::Process::blocking` and in `spawn_blocking`. In a world of
    /// its own, if the future panics, the run fails or is found guilty, or if the program contains no
    /// simulator.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match &self.handle {
            Some(handle) => handle.block_on(future),
            None => in_world_of_its_own(future),
        }
    }

    /// Does nothing.
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard::default()
    }

    /// Returns the metrics of the process.
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle().metrics()
    }

    /// Drops the runtime. Its tasks go on until the process ends.
    pub fn shutdown_timeout(self, _: Duration) {}

    /// Drops the runtime. Its tasks go on until the process ends.
    pub fn shutdown_background(self) {}
}

/// The kind of a runtime, which only tells how it was built.
#[derive(Clone, Copy, Debug)]
enum Kind {
    CurrentThread,
    MultiThread,
}

/// Runs a future to its end in the process of the caller.
#[track_caller]
fn block_on<F: Future>(handle: &Handle, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut output = None;
    let mut poll = |cx: &mut std::task::Context<'_>| match future.as_mut().poll(cx) {
        Poll::Ready(ready) => {
            output = Some(ready);
            Poll::Ready(())
        }
        Poll::Pending => Poll::Pending,
    };
    let ended = handle.process().block_on(&mut poll);
    match (ended, output) {
        (Ok(()), Some(output)) => output,
        _ => panic!(
            "Cannot start a runtime from within a runtime. This happens because a function (like `block_on`) \
             attempted to block the current thread while the thread is being used to drive asynchronous tasks. \
             In a simulated process, block within `sim::Process::blocking` or `spawn_blocking`"
        ),
    }
}

/// Runs a future to its end as the only process of a world.
#[track_caller]
fn in_world_of_its_own<F: Future>(future: F) -> F::Output {
    let mut output = None;
    let slot = &mut output;
    let ended = sim_host::run(async move { *slot = Some(future.await) });
    match (ended, output) {
        (Some(Ok(())), Some(output)) => output,
        (Some(Err(problem)), _) => panic!("{problem}"),
        _ => host::outside(),
    }
}

/// Returns a runtime in the process of the caller.
fn here(flavor: Kind) -> Runtime {
    Runtime { handle: sim_host::process().map(|process| Handle::new(process, flavor)) }
}
