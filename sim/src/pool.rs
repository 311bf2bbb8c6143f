//! A pool of threads that runs independent tasks, for searches and for other work on many schedules.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread::{ScopedJoinHandle, scope};

use crate::world::lock;

/// Runs `work` on each task; each of `threads` threads takes the next task when it is free. If `work` returns
/// `Break`, running tasks are finished, and no other task begins.
///
/// # Errors
///
/// The error of a failed task; of several, that of the thread that was started first. No task begins after
/// one has failed.
pub fn run<T, E: Send>(
    threads: usize,
    tasks: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> Result<ControlFlow<()>, E> + Sync,
) -> Result<(), E> {
    // `None` once no other task may begin.
    let tasks = Mutex::new(Some(tasks));
    let next = || lock(&tasks).as_mut().and_then(Iterator::next);
    let stop = || drop(lock(&tasks).take());
    let one_thread = || {
        while let Some(task) = next() {
            match work(task) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => stop(),
                Err(error) => {
                    stop();
                    return Err(error);
                }
            }
        }
        Ok(())
    };
    let outcomes = scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(one_thread)).collect();
        threads.into_iter().map(ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    for outcome in outcomes {
        outcome.unwrap_or_else(|panic| resume_unwind(panic))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn every_task_is_run_once() {
        let sum = AtomicU64::new(0);
        let work = |task: u64| {
            sum.fetch_add(task, Ordering::Relaxed);
            Ok::<_, ()>(ControlFlow::Continue(()))
        };
        run(3, 1..=100, work).unwrap();
        assert_eq!(sum.into_inner(), 5050);
    }

    #[test]
    fn no_task_begins_after_a_failure_or_a_break() {
        let begun = AtomicU64::new(0);
        let outcome = run(1, 0.., |task| {
            begun.fetch_add(1, Ordering::Relaxed);
            if task == 4 { Err("four") } else { Ok(ControlFlow::Continue(())) }
        });
        assert_eq!((outcome, begun.swap(0, Ordering::Relaxed)), (Err("four"), 5));
        let outcome = run(1, 0.., |task| {
            begun.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ()>(if task == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        assert_eq!((outcome, begun.into_inner()), (Ok(()), 3));
    }
}
