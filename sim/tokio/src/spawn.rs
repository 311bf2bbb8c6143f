//! Starts tasks. Each runs in a `LocalSet` of the real tokio of its own, which catches its panic and knows
//! its handle; the simulator polls that set.

use std::future::Future;
use std::sync::Arc;

use real_tokio::task::{JoinHandle, LocalSet};
use send_wrapper::SendWrapper;
use sim_host::Process;

use crate::alive::counted;
use crate::host;

/// Runs a task in `process`.
pub(crate) fn spawn_in<F>(process: &Arc<dyn Process>, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    start(process, counted(&**process, future))
}

/// Runs code that blocks in `process`.
pub(crate) fn spawn_blocking_in<F, R>(process: &Arc<dyn Process>, f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + 'static,
    R: 'static,
{
    start(process, host::blocking(process, f))
}

fn start<F>(process: &Arc<dyn Process>, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let set = LocalSet::new();
    let handle = set.spawn_local(future);
    run(process, set);
    handle
}

/// Polls the tasks of `set` in `process` until all have ended.
pub(crate) fn run(process: &Arc<dyn Process>, set: LocalSet) {
    process.spawn(Box::pin(SendWrapper::new(set)));
}
