//! Batches of seeds: runs on all threads, results in the order of the seeds.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use crate::pool;
use crate::world::lock;

/// The number of schedules in a batch. What a batch learns guides the schedules of later batches alone, so
/// that a search draws the same schedules on any number of threads.
pub(super) const BATCH: u64 = 64;

/// Results that wait for those of lower seeds.
struct Waiting<T, M> {
    next: u64,
    done: BTreeMap<u64, T>,
    merge: M,
    is_over: bool,
}

/// Runs `work` on the seeds of one batch, on `threads` threads, and gives the results to `merge` in the order
/// of the seeds, each as soon as those of all lower seeds are there. Once `merge` returns `Break`, no result
/// is merged any more. Returns whether it did.
///
/// # Errors
///
/// The error of `work`; no seed begins after it.
pub(super) fn run<T: Send, E: Send>(
    threads: usize,
    seeds: Range<u64>,
    work: impl Fn(u64) -> Result<T, E> + Sync,
    merge: impl FnMut(u64, T) -> ControlFlow<()> + Send,
) -> Result<ControlFlow<()>, E> {
    let waiting = Waiting { next: seeds.start, done: BTreeMap::new(), merge, is_over: false };
    let waiting = Mutex::new(waiting);
    pool::run(threads, seeds, |seed| {
        let result = work(seed)?;
        let mut waiting = lock(&waiting);
        waiting.done.insert(seed, result);
        Ok(waiting.merge_ready())
    })?;
    let waiting = waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(if waiting.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}

impl<T, M: FnMut(u64, T) -> ControlFlow<()>> Waiting<T, M> {
    fn merge_ready(&mut self) -> ControlFlow<()> {
        while !self.is_over
            && let Some(result) = self.done.remove(&self.next)
        {
            self.is_over = (self.merge)(self.next, result).is_break();
            self.next += 1;
        }
        if self.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Splits seeds into batches.
pub(super) fn of(seeds: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let Range { mut start, end } = seeds;
    std::iter::from_fn(move || {
        let batch = start..start.saturating_add(BATCH).min(end);
        start = batch.end;
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_seeds_and_end_with_a_break() {
        let mut merged = Vec::new();
        let merge = |seed, result: u64| {
            merged.push((seed, result));
            if seed == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let flow = run(3, 3..40, |seed| Ok::<_, ()>(seed * 2), merge).unwrap();
        assert!(flow.is_break());
        assert_eq!(merged, (3..=20).map(|seed| (seed, seed * 2)).collect::<Vec<_>>());
    }

    #[test]
    fn batches_cover_all_seeds_once() {
        let batches: Vec<_> = of(10..150).collect();
        assert_eq!(batches, [10..74, 74..138, 138..150]);
        assert_eq!(of(5..5).count(), 0);
        assert_eq!(of(u64::MAX - 1..u64::MAX).count(), 1);
    }
}
