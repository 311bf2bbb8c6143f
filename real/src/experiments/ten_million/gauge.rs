//! The memory of processes while a store is filled.

use std::cell::{Cell, RefCell};
use std::fs;
use std::ops::ControlFlow;

use dlock::{Instant, Runtime, TokioRuntime};
use serde::{Deserialize, Serialize};

/// The number of locks between two looks at the memory.
const LOOK: u64 = 1000;

/// The state of a fill when it has made a number of locks.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Reached {
    pub(super) locks: u64,
    /// Since the begin of the fill.
    pub(super) at_s: f64,
    /// Growth of the member's memory, in bytes.
    pub(super) memory_bytes: u64,
}

impl Reached {
    /// Returns the growth of the memory for each lock, in bytes.
    pub(super) fn bytes_per_lock(&self) -> f64 {
        self.memory_bytes as f64 / self.locks.max(1) as f64
    }
}

/// Measures the memory of processes during a fill, and ends the fill when one has used up its own.
pub(super) struct Gauge {
    runtime: TokioRuntime,
    begun: Instant,
    /// The processes, with the memory of each at the begin.
    before: Vec<(u32, u64)>,
    every: u64,
    most_bytes: u64,
    locks: Cell<u64>,
    is_full: Cell<bool>,
    /// For each sample the locks, the time, and the growth of each process.
    samples: RefCell<Vec<(u64, f64, Vec<u64>)>>,
}

impl Gauge {
    /// Begins to measure, with a sample after each `every` locks. The fill ends when one of the processes
    /// takes `most_bytes`.
    pub(super) fn begin(runtime: TokioRuntime, processes: &[u32], every: u64, most_bytes: u64) -> Self {
        let before = processes.iter().map(|pid| (*pid, resident_bytes(*pid))).collect();
        let begun = runtime.now();
        let (locks, is_full, samples) = (Cell::new(0), Cell::new(false), RefCell::new(Vec::new()));
        Self { runtime, begun, before, every, most_bytes, locks, is_full, samples }
    }

    /// Counts locks, each call one or a few; breaks if the memory is used up.
    pub(super) fn on_locks(&self, made: u64) -> ControlFlow<()> {
        let before = self.locks.get();
        let locks = before + made;
        self.locks.set(locks);
        if locks / self.every > before / self.every {
            self.sample();
        }
        if locks / LOOK > before / LOOK
            && self.before.iter().any(|(pid, _)| resident_bytes(*pid) >= self.most_bytes)
        {
            self.is_full.set(true);
        }
        if self.is_full.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn sample(&self) {
        let at_s = self.runtime.now().saturating_since(self.begun).as_secs_f64();
        let grown = self.before.iter().map(|(pid, before)| resident_bytes(*pid).saturating_sub(*before));
        self.samples.borrow_mut().push((self.locks.get(), at_s, grown.collect()));
    }

    /// Ends with a last sample. Returns those of the process that has grown most, and whether the memory was
    /// used up.
    pub(super) fn end(self) -> (Vec<Reached>, bool) {
        if self.samples.borrow().last().is_none_or(|(locks, ..)| *locks < self.locks.get()) {
            self.sample();
        }
        let samples = self.samples.into_inner();
        let at_end = samples.last().map(|(.., grown)| grown.iter().enumerate()).into_iter().flatten();
        let most = at_end.max_by_key(|(_, bytes)| **bytes).map_or(0, |(process, _)| process);
        let reached = |(locks, at_s, grown): (u64, f64, Vec<u64>)| {
            let memory_bytes = grown.get(most).copied().unwrap_or_default();
            Reached { locks, at_s, memory_bytes }
        };
        (samples.into_iter().map(reached).collect(), self.is_full.get())
    }
}

/// Returns the resident memory of a process; zero if the kernel does not report it.
fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(most_bytes: u64) -> Gauge {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        Gauge::begin(runtime, &[std::process::id()], 1500, most_bytes)
    }

    #[tokio::test]
    async fn samples_are_taken_at_multiples_and_at_the_end() {
        let (reached, is_full) = {
            let gauge = gauge(u64::MAX);
            assert!((0..4000).all(|_| gauge.on_locks(1).is_continue()));
            gauge.end()
        };
        let locks: Vec<_> = reached.iter().map(|reached| reached.locks).collect();
        assert_eq!((locks, is_full), (vec![1500, 3000, 4000], false));
    }

    #[tokio::test]
    async fn a_process_that_takes_its_memory_ends_the_fill() {
        let gauge = gauge(1);
        let made = (1..4000).take_while(|_| gauge.on_locks(1).is_continue()).count();
        assert_eq!(made, 999);
        // Requests in flight still make locks.
        assert!(gauge.on_locks(1).is_break());
        let (reached, is_full) = gauge.end();
        assert_eq!((reached.len(), reached[0].locks, is_full), (1, 1001, true));
    }
}
