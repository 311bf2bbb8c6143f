//! Spawning tasks.

use std::future::Future;

use real_tokio::task::JoinHandle;

use crate::host;
use crate::spawn::{spawn_blocking_in, spawn_in};

/// Runs a task in the process of the caller.
///
/// # Panics
///
/// Outside of a simulated process.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    spawn_in(&host::process(), future)
}

/// Runs code that blocks, in turns with the tasks.
///
/// # Panics
///
/// Outside of a simulated process.
#[track_caller]
pub fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    spawn_blocking_in(&host::process(), f)
}

/// Calls `f`, which may block: within a simulated world every other task waits for it.
#[cfg(feature = "rt-multi-thread")]
pub fn block_in_place<F, R>(f: F) -> R
where
    F: FnOnce() -> R,
{
    f()
}
