//! Exploration: random schedules, each run with fencing off and on, in search of a verdict that nothing explains.
//!
//! Some verdicts are known limits of what a schedule uses: any lease allows an overlap under a long pause, a counter that
//! lives on a server which forgets may regress. [`allowed`] states them. A verdict beyond them is a violation: of the lock,
//! of the resource, or of the simulator.

mod allowed;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub use allowed::allowed;

use crate::run::{Report, RunError, run};
use crate::schedule::{Arm, Outcome, Schedule, Verdict, draw};
use crate::world::lock;

/// What a search has found so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many schedules were run, each in both arms.
    pub schedules: u64,
    /// How many faults struck.
    pub faults: u64,
    /// How many commands the lock servers executed.
    pub commands: u64,
    /// How many runs of each arm had each verdict.
    pub verdicts: BTreeMap<(Arm, Verdict), u64>,
    /// How many writes were refused with a 409, in the arm with fencing.
    pub refused: u64,
    /// How many runs broke a promise.
    pub violations: u64,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The seed that the schedule was drawn from.
    pub seed: u64,
    /// The arm that broke it.
    pub arm: Arm,
    /// The verdicts that nothing explains.
    pub broken: BTreeSet<Verdict>,
    /// The schedule, which demands what the run gave: replaying it shows the violation again.
    pub schedule: Schedule,
}

/// Draws schedules from `seeds` and runs them on `threads` threads, as long as `go_on` says so; it is given the tally after
/// each schedule. Violations come in the order of their seeds.
///
/// # Errors
///
/// [`RunError`] if a run fails; the search then ends.
pub fn explore(
    seeds: Range<u64>,
    threads: usize,
    go_on: impl Fn(&Tally) -> bool + Sync,
) -> Result<(Tally, Vec<Violation>), RunError> {
    let search = Search { next: AtomicU64::new(seeds.start), end: seeds.end, found: Mutex::default() };
    let outcomes = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(|| search.work(&go_on))).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => outcome?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let Found { tally, mut violations } = search.found.into_inner().unwrap_or_default();
    violations.sort_by_key(|violation| (violation.seed, violation.arm));
    Ok((tally, violations))
}

struct Search {
    next: AtomicU64,
    end: u64,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    tally: Tally,
    violations: Vec<Violation>,
}

impl Search {
    fn work(&self, go_on: &(impl Fn(&Tally) -> bool + Sync)) -> Result<(), RunError> {
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.end {
                return Ok(());
            }
            let schedule = draw(seed);
            let reports = [run(&schedule, Arm::Unfenced, seed)?, run(&schedule, Arm::Fenced, seed)?];
            let mut found = lock(&self.found);
            found.add(&schedule, &reports);
            if !go_on(&found.tally) {
                self.next.store(self.end, Ordering::Relaxed);
                return Ok(());
            }
        }
    }
}

impl Found {
    fn add(&mut self, schedule: &Schedule, reports: &[Report]) {
        self.tally.schedules += 1;
        for report in reports {
            self.tally.add(report);
            if let Some(violation) = violation(schedule, report) {
                self.tally.violations += 1;
                self.violations.push(violation);
            }
        }
    }
}

impl Tally {
    fn add(&mut self, report: &Report) {
        self.commands += report.commands;
        for kind in report.kinds() {
            *self.verdicts.entry((report.arm, kind)).or_default() += 1;
        }
        if report.arm == Arm::Fenced {
            self.faults += report.struck as u64;
            self.refused += report.summary().refused.len() as u64;
        }
    }
}

/// The violation that the run shows, if it shows one.
pub fn violation(schedule: &Schedule, report: &Report) -> Option<Violation> {
    let allowed = allowed(schedule, report.arm);
    let broken: BTreeSet<Verdict> = report.kinds().difference(&allowed).copied().collect();
    if broken.is_empty() {
        return None;
    }
    let mut schedule = schedule.clone();
    schedule.seed = report.seed;
    let outcome = Some(outcome(report));
    match report.arm {
        Arm::Unfenced => schedule.expect.unfenced = outcome,
        Arm::Fenced => schedule.expect.fenced = outcome,
    }
    Some(Violation { seed: report.seed, arm: report.arm, broken, schedule })
}

/// What a run gave, as the demand of a schedule.
pub fn outcome(report: &Report) -> Outcome {
    let summary = report.summary();
    Outcome {
        verdicts: report.kinds(),
        accepted: Some(summary.accepted),
        refused: Some(summary.refused),
        ..Outcome::default()
    }
}
