//! Parallel runs.
#![allow(clippy::disallowed_methods, reason = "each run waits for processes, on a thread of its own")]

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

/// Runs `job` for each of `items`, at most `at_once` at a time, and returns the results in the order of the
/// items. After the first error it starts no further job, and waits for those running.
pub(crate) fn in_parallel<I: Sync, T: Send, E: Send>(
    items: &[I],
    at_once: usize,
    job: impl Fn(&I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = Mutex::new(items.iter().enumerate());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let give_up = || next.lock().unwrap_or_else(PoisonError::into_inner).by_ref().for_each(drop);
    let work = || {
        let mut done = Vec::new();
        while let Some((place, item)) = take() {
            let result = job(item);
            if result.is_err() {
                give_up();
            }
            done.push((place, result));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once.min(items.len())).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().flat_map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Vec<_>>()
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..20).collect();
        assert_eq!(
            in_parallel(&items, 3, |item| Ok::<_, String>(item * 2)).unwrap(),
            (0..20).map(|item| item * 2).collect::<Vec<_>>()
        );
        let failing = |item: &u32| if *item == 7 { Err("7".to_owned()) } else { Ok(*item) };
        assert_eq!(in_parallel(&items, 3, failing).unwrap_err(), "7");
    }
}
