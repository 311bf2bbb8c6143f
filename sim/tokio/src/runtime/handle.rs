//! A handle of the simulated process.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use real_tokio::runtime::RuntimeFlavor;
use real_tokio::task::{JoinHandle, LocalEnterGuard};
use send_wrapper::SendWrapper;
use sim_host::Process;

use super::Kind;
use super::id::Id;
use super::metrics::RuntimeMetrics;
use crate::host;
use crate::spawn::{spawn_blocking_in, spawn_in};

/// A handle of the simulated process.
#[derive(Clone)]
pub struct Handle {
    process: Arc<dyn Process>,
    flavor: Kind,
    name: Option<Arc<str>>,
}

/// Does nothing, since the caller is in its process already, unless it comes from a `LocalRuntime`.
#[derive(Default)]
#[must_use = "Creating and dropping a guard does nothing"]
pub struct EnterGuard<'a> {
    handle: PhantomData<&'a Handle>,
    /// Leaves the tasks of a `LocalRuntime` when it is dropped.
    _local: Option<SendWrapper<LocalEnterGuard>>,
}

/// The caller is in no simulated process.
#[derive(Debug)]
pub struct TryCurrentError(());

impl Handle {
    pub(super) fn new(process: Arc<dyn Process>, flavor: Kind) -> Self {
        Self { process, flavor, name: None }
    }

    /// Gives it the name of a runtime.
    pub(super) fn set_name(&mut self, name: Option<Arc<str>>) {
        self.name = name;
    }

    pub(crate) fn process(&self) -> &Arc<dyn Process> {
        &self.process
    }

    /// Returns the handle of the caller's process.
    ///
    /// # Panics
    ///
    /// Outside of a simulated process.
    #[track_caller]
    pub fn current() -> Self {
        Self::new(host::process(), Kind::MultiThread)
    }

    /// Returns the handle of the caller's process.
    ///
    /// # Errors
    ///
    /// Outside of a simulated process.
    pub fn try_current() -> Result<Self, TryCurrentError> {
        let process = sim_host::process().ok_or(TryCurrentError(()))?;
        Ok(Self::new(process, Kind::MultiThread))
    }

    /// Runs a task.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_in(&self.process, future)
    }

    /// Runs code that blocks, in turns with the tasks.
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, func: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        spawn_blocking_in(&self.process, func)
    }

    /// Runs a future to its end. The caller waits, and other tasks run meanwhile.
    ///
    /// # Panics
    ///
    /// In a task, as tokio's own. It works in `sim::Process::blocking` and in `spawn_blocking`.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        super::block_on(self, future)
    }

    /// Does nothing: the caller is in its process already.
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard::default()
    }

    /// Returns a guard that also keeps that of local tasks.
    pub(super) fn enter_with(&self, local: LocalEnterGuard) -> EnterGuard<'_> {
        EnterGuard { _local: Some(SendWrapper::new(local)), ..self.enter() }
    }

    /// Returns the number of the process.
    pub fn id(&self) -> Id {
        Id::of_process(self.process.name())
    }

    /// Returns the name that `Builder::name` gave the runtime; `None` for [`Handle::current`], which knows
    /// only the process.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the metrics of the process.
    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics::new(Arc::clone(&self.process))
    }

    /// Returns the kind of the runtime, as it was built.
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        match self.flavor {
            Kind::CurrentThread => RuntimeFlavor::CurrentThread,
            Kind::MultiThread => RuntimeFlavor::MultiThread,
        }
    }
}

// As tokio's own.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("process", &self.process.name()).finish()
    }
}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").finish_non_exhaustive()
    }
}

impl TryCurrentError {
    /// Returns true.
    pub fn is_missing_context(&self) -> bool {
        true
    }

    /// Returns false.
    pub fn is_thread_local_destroyed(&self) -> bool {
        false
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no reactor running: the caller is in no process of a simulated world")
    }
}

impl std::error::Error for TryCurrentError {}
