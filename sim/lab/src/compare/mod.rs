//! The comparison: every lock system under every class of faults, the same number of schedules each, with
//! fencing off and on.
//!
//! [`compare`] draws and runs the schedules; [`table`] formats the counts. The same first seed gives the same
//! table on any number of threads: each cell counts runs, and runs are independent.

pub mod table;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

use history::VerdictKind as Verdict;
use sim::faults::{Class, Faults};
use sim::world::lock;
use sim::{Report, RunError, Schedule, pool};

use crate::{Arm, Options, System, draw_class, excused, run};

/// One system under one class of faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Number of schedules, each run in both arms.
    pub schedules: u64,
    /// Number of schedules in which a fault struck, with fencing on.
    pub struck: u64,
    /// Number of runs of the arm with the verdict.
    pub verdicts: BTreeMap<(Arm, Verdict), u64>,
    /// Number of rounds of workers that got the lock, with fencing on.
    pub grants: u64,
    /// Number of writes that the resource refused, with fencing on.
    pub refused: u64,
    /// Number of runs with a verdict that nothing in their schedule explains: see [`excused`].
    pub violations: u64,
    /// The lowest seed whose runs a count includes.
    pub first: BTreeMap<Count, u64>,
}

/// The quantity that a number of the comparison counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// Runs of the arm with the verdict.
    Verdict(Arm, Verdict),
    /// Writes that the resource refused, with fencing on.
    Refused,
    /// Runs with a verdict that nothing in their schedule explains.
    Unexplained,
}

impl Count {
    /// Returns the arm whose runs show it best.
    pub const fn arm(self) -> Arm {
        match self {
            Self::Verdict(arm, _) => arm,
            Self::Refused | Self::Unexplained => Arm::Fenced,
        }
    }
}

/// The counts of a comparison, by system and class.
pub type Comparison = BTreeMap<(System, &'static Class), Cell>;

/// Runs `schedules` schedules of each system under each class that it can have, from the seed `first` on, on
/// `threads` threads. Calls `go_on` after each schedule, and stops when it returns false: the last cells then
/// have fewer schedules, or are missing.
///
/// # Errors
///
/// [`RunError`] if a run fails; the comparison then ends.
pub fn compare(
    first: u64,
    schedules: u64,
    threads: usize,
    go_on: impl Fn() -> bool + Sync,
) -> Result<Comparison, RunError> {
    let tasks: Vec<(System, &'static Class, u64)> = cells()
        .flat_map(|(system, class)| (0..schedules).map(move |number| (system, class, first + number)))
        .collect();
    let found = Mutex::new(Comparison::new());
    pool::run(threads, tasks.into_iter(), |(system, class, seed)| -> Result<_, RunError> {
        if let Some(schedule) = draw_class(system, class, seed) {
            let reports = [
                (Arm::Unfenced, run(&schedule, Arm::Unfenced, seed)?),
                (Arm::Fenced, run(&schedule, Arm::Fenced, seed)?),
            ];
            lock(&found).entry((system, class)).or_default().add(seed, &schedule, &reports);
            if !go_on() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found.into_inner().unwrap_or_default())
}

/// Returns each system with each class of faults that it can have.
pub fn cells() -> impl Iterator<Item = (System, &'static Class)> {
    let classes = || Faults::default().classes().into_iter();
    let all = System::all().flat_map(move |system| classes().map(move |class| (system, class)));
    all.filter(|(system, class)| system.has_class(class))
}

impl Cell {
    /// Returns a number of the comparison.
    pub fn of(&self, count: Count) -> u64 {
        match count {
            Count::Verdict(arm, verdict) => self.verdicts.get(&(arm, verdict)).copied().unwrap_or_default(),
            Count::Refused => self.refused,
            Count::Unexplained => self.violations,
        }
    }

    fn add(&mut self, seed: u64, schedule: &Schedule<Options>, reports: &[(Arm, Report)]) {
        self.schedules += 1;
        for (arm, report) in reports {
            let kinds = report.kinds();
            if !kinds.is_subset(&excused(schedule, *arm)) {
                self.violations += 1;
                self.shows(Count::Unexplained, seed);
            }
            for kind in kinds {
                *self.verdicts.entry((*arm, kind)).or_default() += 1;
                self.shows(Count::Verdict(*arm, kind), seed);
            }
            if *arm == Arm::Fenced {
                let summary = report.summary();
                self.struck += u64::from(report.faults_struck() > 0);
                self.grants += summary.grants;
                self.refused += summary.refused.len() as u64;
                if !summary.refused.is_empty() {
                    self.shows(Count::Refused, seed);
                }
            }
        }
    }

    /// Notes that the runs of `seed` are among those that the number counts.
    fn shows(&mut self, count: Count, seed: u64) {
        let first = self.first.entry(count).or_insert(seed);
        *first = seed.min(*first);
    }
}
