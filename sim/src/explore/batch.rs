//! Batches of seeds: runs on all threads, results in the order of the seeds.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crate::pool;
use crate::world::lock;

/// The number of schedules in a batch. The results of a batch guide only the schedules of later batches, so
/// that a search draws the same schedules on any number of threads.
pub(super) const BATCH: usize = 64;

/// Results that wait for the results of lower seeds.
struct Waiting<T, M> {
    /// The place of the seed whose result comes next.
    next: usize,
    done: BTreeMap<usize, T>,
    merge: M,
    is_over: bool,
}

/// Runs `work` on the seeds of one batch, on `threads` threads, and passes the results to `merge` in the
/// order of the seeds, each as soon as all lower seeds have theirs. Once `merge` returns `Break`, no more
/// results are merged. Returns true if it did.
///
/// # Errors
///
/// The error of `work`; no seed begins after it.
pub(super) fn run<T: Send, E: Send>(
    threads: usize,
    seeds: Vec<u64>,
    work: impl Fn(u64) -> Result<T, E> + Sync,
    merge: impl FnMut(T) -> ControlFlow<()> + Send,
) -> Result<ControlFlow<()>, E> {
    let waiting = Waiting { next: 0, done: BTreeMap::new(), merge, is_over: false };
    let waiting = Mutex::new(waiting);
    pool::run(threads, seeds.into_iter().enumerate(), |(place, seed)| {
        let result = work(seed)?;
        let mut waiting = lock(&waiting);
        waiting.done.insert(place, result);
        Ok(waiting.merge_ready())
    })?;
    let waiting = waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(if waiting.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}

impl<T, M: FnMut(T) -> ControlFlow<()>> Waiting<T, M> {
    fn merge_ready(&mut self) -> ControlFlow<()> {
        while !self.is_over
            && let Some(result) = self.done.remove(&self.next)
        {
            self.is_over = (self.merge)(result).is_break();
            self.next += 1;
        }
        if self.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Splits seeds into batches, in their order.
pub(super) fn of(seeds: impl IntoIterator<Item = u64>) -> impl Iterator<Item = Vec<u64>> {
    let mut seeds = seeds.into_iter();
    std::iter::from_fn(move || {
        let batch: Vec<u64> = seeds.by_ref().take(BATCH).collect();
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_seeds_and_end_with_a_break() {
        let mut merged = Vec::new();
        let merge = |result: u64| {
            merged.push(result);
            if result == 40 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let flow = run(3, (3..40).collect(), |seed| Ok::<_, ()>(seed * 2), merge).unwrap();
        assert!(flow.is_break());
        assert_eq!(merged, (3..=20).map(|seed| seed * 2).collect::<Vec<_>>());
    }

    #[test]
    fn batches_cover_all_seeds_once() {
        let batches: Vec<_> = of(10..150).collect();
        assert_eq!(batches.concat(), (10..150).collect::<Vec<_>>());
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 12]);
        assert_eq!(of(5..5).count(), 0);
    }
}
