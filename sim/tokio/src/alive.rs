//! Counts the tasks of each process that have not ended.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use sim_host::Process;

thread_local! {
    /// The numbers of tasks by process. A world has one thread, and a thread one world at a time.
    static ALIVE: RefCell<BTreeMap<String, usize>> = const { RefCell::new(BTreeMap::new()) };
}

pin_project_lite::pin_project! {
    /// The future of a task that is counted until this is dropped.
    pub(crate) struct Counted<F> {
        #[pin]
        future: F,
        task: Task,
    }
}

/// A task of the process with this name. It ends when this is dropped.
struct Task(String);

/// Counts a task of `process`.
pub(crate) fn counted<F: Future>(process: &dyn Process, future: F) -> Counted<F> {
    let name = process.name();
    ALIVE.with_borrow_mut(|alive| *alive.entry(name.clone()).or_default() += 1);
    Counted { future, task: Task(name) }
}

/// Returns the number of tasks of the process with this name.
pub(crate) fn count(name: &str) -> usize {
    ALIVE.with_borrow(|alive| alive.get(name).copied().unwrap_or_default())
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // At the end of the thread, the map may be gone.
        let _ = ALIVE.try_with(|alive| {
            let mut alive = alive.borrow_mut();
            if let Some(count) = alive.get_mut(&self.0) {
                *count -= 1;
                if *count == 0 {
                    alive.remove(&self.0);
                }
            }
        });
    }
}
