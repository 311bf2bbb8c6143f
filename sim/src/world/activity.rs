//! Counts what a process does, so that a search knows between which points a fault can make a difference.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The activity of one process. Counting costs no more than a look: a world has one thread.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Turns of its tasks, and awaits within a turn at which a pause would stop it.
    turns: AtomicU64,
    /// Readings of its wall clock.
    wall_reads: AtomicU64,
    /// True if a pause stops every task of the process at its next turn, and not at its next call of the
    /// world.
    stops_whole: AtomicBool,
}

impl Activity {
    /// Makes a pause stop every task of the process, from now on.
    pub(super) fn stop_whole(&self) {
        self.stops_whole.store(true, Ordering::Relaxed);
    }

    /// Returns true if a pause stops every task of the process.
    pub(super) fn stops_whole(&self) -> bool {
        self.stops_whole.load(Ordering::Relaxed)
    }

    pub(super) fn turn(&self) {
        increment(&self.turns);
    }

    pub(super) fn read_wall(&self) {
        increment(&self.wall_reads);
    }

    /// Returns the numbers of turns and of readings of the wall clock so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.turns.load(Ordering::Relaxed), self.wall_reads.load(Ordering::Relaxed))
    }
}

fn increment(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
