//! A runtime for tasks that stay on its thread.

use std::fmt;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use real_tokio::task::{JoinHandle, LocalSet};

use super::handle::{EnterGuard, Handle};
use super::metrics::RuntimeMetrics;
use super::{Kind, here};

/// A runtime that also runs tasks that can't be sent to other threads. As with tokio, these run while
/// [`LocalRuntime::block_on`] does, and are dropped with the runtime; all others are tasks of the process.
pub struct LocalRuntime {
    handle: Handle,
    tasks: LocalSet,
}

/// The options of a [`LocalRuntime`], of which there are none. As tokio's own, they stay on one thread.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LocalOptions(PhantomData<*mut u8>);

impl LocalRuntime {
    /// Returns a runtime in the process of the caller.
    ///
    /// # Errors
    ///
    /// None.
    ///
    /// # Panics
    ///
    /// Outside of a simulated process.
    #[track_caller]
    pub fn new() -> io::Result<Self> {
        Ok(Self::with_handle(here(Kind::CurrentThread).handle().clone()))
    }

    pub(super) fn with_handle(handle: Handle) -> Self {
        Self { handle, tasks: LocalSet::new() }
    }

    /// Returns the handle, whose tasks are those of the process.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Adds a task, which runs while [`LocalRuntime::block_on`] does.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.tasks.spawn_local(future)
    }

    /// Runs code that blocks, in turns with the tasks.
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, func: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle.spawn_blocking(func)
    }

    /// Runs a future to its end, and the tasks of `spawn_local` beside it. The caller waits, and other tasks
    /// of the process run meanwhile.
    ///
    /// # Panics
    ///
    /// In a task, as tokio's own. It works in `sim::Process::blocking` and in `spawn_blocking`.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(self.tasks.run_until(future))
    }

    /// Makes `task::spawn_local` spawn into this runtime while the result lives.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter_with(self.tasks.enter())
    }

    /// Drops the runtime and the tasks of `spawn_local`. Those of the process go on until it ends.
    pub fn shutdown_timeout(self, _: Duration) {}

    /// Drops the runtime, as [`LocalRuntime::shutdown_timeout`] does.
    pub fn shutdown_background(self) {}

    /// Returns the metrics of the process.
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle.metrics()
    }
}

// As tokio's own.
impl UnwindSafe for LocalRuntime {}
impl RefUnwindSafe for LocalRuntime {}

impl fmt::Debug for LocalRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalRuntime").field("handle", &self.handle).finish_non_exhaustive()
    }
}
