//! Tasks that stay on one thread. A world has only one.

use std::cell::OnceCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use real_tokio::task::JoinHandle;

use crate::runtime::{Id, Runtime};

/// A set of tasks that stay on the thread of their set.
#[derive(Default)]
pub struct LocalSet {
    pub(super) tasks: real_tokio::task::LocalSet,
    id: OnceCell<Id>,
}

/// The set into which `spawn_local` spawns while this lives.
pub struct LocalEnterGuard(#[allow(dead_code, reason = "it leaves the set when it is dropped")] Inner);

type Inner = real_tokio::task::LocalEnterGuard;

/// Runs a task in the [`LocalSet`] that polls the caller.
///
/// # Panics
///
/// Outside of every [`LocalSet`].
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    real_tokio::task::spawn_local(future)
}

impl LocalSet {
    /// Returns an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of the set, which it gets at the first call.
    pub fn id(&self) -> Id {
        *self.id.get_or_init(Id::next)
    }

    /// Makes `spawn_local` spawn into this set while the result lives.
    pub fn enter(&self) -> LocalEnterGuard {
        LocalEnterGuard(self.tasks.enter())
    }

    /// Adds a task to the set, which runs when the set is polled.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.tasks.spawn_local(future)
    }

    /// Runs a future to its end on `runtime`, and the tasks of the set beside it.
    ///
    /// # Panics
    ///
    /// As [`Runtime::block_on`].
    #[track_caller]
    pub fn block_on<F: Future>(&self, runtime: &Runtime, future: F) -> F::Output {
        runtime.block_on(self.run_until(future))
    }

    /// Runs a future to its end, and the tasks of the set beside it.
    pub async fn run_until<F: Future>(&self, future: F) -> F::Output {
        self.tasks.run_until(future).await
    }
}

impl Future for LocalSet {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.tasks).poll(cx)
    }
}

impl fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSet").finish_non_exhaustive()
    }
}

impl fmt::Debug for LocalEnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEnterGuard").finish_non_exhaustive()
    }
}
