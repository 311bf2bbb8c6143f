//! A set of tasks whose results are taken as they come: the real one, whose tasks the simulator polls.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use real_tokio::task::{AbortHandle, Id, JoinError};
use sim_host::Process;

use super::LocalSet;
use crate::alive::counted;
use crate::host;
use crate::runtime::Handle;
use crate::spawn::run;

/// A set of tasks. Dropping it aborts them.
pub struct JoinSet<T>(real_tokio::task::JoinSet<T>);

impl<T> JoinSet<T> {
    /// Returns an empty set.
    pub fn new() -> Self {
        Self(real_tokio::task::JoinSet::new())
    }

    /// Returns the number of tasks in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the set has no task.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: 'static> JoinSet<T> {
    /// Runs a task of the set in the process of the caller.
    ///
    /// # Panics
    ///
    /// Outside of a simulated process.
    #[track_caller]
    pub fn spawn<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let process = host::process();
        self.spawn_in(&process, counted(&*process, task))
    }

    /// Runs a task of the set in the process of `handle`.
    #[track_caller]
    pub fn spawn_on<F>(&mut self, task: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.spawn_in(handle.process(), counted(&**handle.process(), task))
    }

    /// Runs a task of the set that stays on this thread.
    ///
    /// # Panics
    ///
    /// Outside of every `LocalSet`.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.0.spawn_local(task)
    }

    /// Runs a task of the set in `local_set`.
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, task: F, local_set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.0.spawn_local_on(task, &local_set.tasks)
    }

    /// Runs code of the set that blocks.
    ///
    /// # Panics
    ///
    /// Outside of a simulated process.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        let process = host::process();
        self.spawn_in(&process, host::blocking(&process, f))
    }

    /// Runs code of the set that blocks in the process of `handle`.
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.spawn_in(handle.process(), host::blocking(handle.process(), f))
    }

    fn spawn_in(
        &mut self,
        process: &Arc<dyn Process>,
        task: impl Future<Output = T> + 'static,
    ) -> AbortHandle {
        let set = real_tokio::task::LocalSet::new();
        let handle = self.0.spawn_local_on(task, &set);
        run(process, set);
        handle
    }

    /// Waits for the next task that ends; `None` if the set is empty.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.0.join_next().await
    }

    /// As [`JoinSet::join_next`], with the id of the task.
    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.0.join_next_with_id().await
    }

    /// Returns the result of a task that has ended, if there is one.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.0.try_join_next()
    }

    /// As [`JoinSet::try_join_next`], with the id of the task.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.0.try_join_next_with_id()
    }

    /// Aborts all tasks, and waits for their ends.
    pub async fn shutdown(&mut self) {
        self.0.shutdown().await;
    }

    /// Waits for all tasks, and returns their results in the order in which they ended.
    ///
    /// # Panics
    ///
    /// If a task did.
    pub async fn join_all(self) -> Vec<T> {
        self.0.join_all().await
    }

    /// Aborts all tasks.
    pub fn abort_all(&mut self) {
        self.0.abort_all();
    }

    /// Removes all tasks from the set, which go on.
    pub fn detach_all(&mut self) {
        self.0.detach_all();
    }

    /// Polls for the next task that ends.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.0.poll_join_next(cx)
    }

    /// As [`JoinSet::poll_join_next`], with the id of the task.
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        self.0.poll_join_next_with_id(cx)
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}

/// Spawns the futures as tasks of a new set.
impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        let mut set = Self::new();
        set.extend(futures);
        set
    }
}

impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn extend<I: IntoIterator<Item = F>>(&mut self, futures: I) {
        for future in futures {
            self.spawn(future);
        }
    }
}
