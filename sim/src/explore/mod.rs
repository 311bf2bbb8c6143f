//! Searches random schedules of a subject for verdicts that nothing explains.
//!
//! Some verdicts are known limits of a schedule's options and faults: [`Subject::excused`] returns them. Any
//! other verdict, and any check that does not hold, is a violation: a mistake of the lock, of the resource or
//! of the simulator.

mod cause;
mod explain;
mod harness;
mod sentence;
mod shrink;
mod trial;
mod vary;

pub use cause::{Broken, Cause, Causes, Party};
pub use explain::{Explained, Explanation, Range, SEEDS, explain, varied};
pub use harness::{Failure, Search, check, difference};
pub use shrink::{RUNS_MAX, Shrunk, shrink};
pub use vary::Part;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use resource::audit::VerdictKind;

use crate::pool;
use crate::sim::{self, Draw, Outcome, Report, RunError, Schedule, Subject};
use crate::world::lock;

/// The counts of a search.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of schedules, each run in every arm.
    pub schedules: u64,
    /// Number of faults that struck, in the last arm.
    pub faults: u64,
    /// Number of requests that the servers carried out, in all arms.
    pub commands: u64,
    /// Number of runs of the arm with the verdict.
    pub verdicts: BTreeMap<(&'static str, VerdictKind), u64>,
    /// Number of writes that the resource refused, in the last arm.
    pub refused: u64,
    /// Number of runs with a violation.
    pub violations: u64,
}

/// A run with a verdict that nothing explains, or with a check that did not hold.
#[derive(Clone, Debug)]
pub struct Violation<O> {
    /// The arm of the run.
    pub arm: &'static str,
    /// The verdicts that nothing explains.
    pub broken: BTreeSet<VerdictKind>,
    /// The checks that did not hold, each with its problem.
    pub findings: Vec<String>,
    /// The cause of the first violation in the run.
    pub cause: Cause,
    /// The schedule, which expects the outcome of the run: a replay shows the violation again.
    pub schedule: Schedule<O>,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found<O> {
    /// Counts over all schedules.
    pub tally: Tally,
    /// The violations, in the order of their seeds.
    pub violations: Vec<Violation<O>>,
}

/// Draws schedules from `seeds` and runs each in all `arms` (subjects that draw the same schedules), on
/// `threads` threads. Calls `go_on` with the tally after each schedule, and stops when it returns false.
///
/// # Errors
///
/// [`RunError`] if a run fails; the search then ends.
pub fn explore<S: Subject>(
    arms: &[S],
    seeds: std::ops::Range<u64>,
    threads: usize,
    go_on: impl Fn(&Tally) -> bool + Sync,
) -> Result<Found<S::Options>, RunError> {
    let found = Mutex::new(Found { tally: Tally::default(), violations: Vec::new() });
    let whole = |found: Mutex<Found<S::Options>>| found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some(first) = arms.first() else { return Ok(whole(found)) };
    let points = sim::survey(first)?;
    pool::run(threads, seeds, |seed| -> Result<_, RunError> {
        let schedule = first.schedule(&mut Draw::aimed(seed, &points))?;
        let reports =
            arms.iter().map(|arm| sim::run(arm, &schedule)).collect::<Result<Vec<_>, RunError>>()?;
        let mut found = lock(&found);
        let Found { tally, violations } = &mut *found;
        tally.schedules += 1;
        for (arm, report) in arms.iter().zip(&reports) {
            tally.add(arm.arm(), report);
            let violation = violation(arm, &schedule, report);
            tally.violations += u64::from(violation.is_some());
            if let Some(violation) = violation {
                violations.push(without_idle_faults(arm, violation, report)?);
            }
        }
        if let Some(report) = reports.last() {
            tally.faults += report.faults_struck() as u64;
            tally.refused += report.summary().refused.len() as u64;
        }
        Ok(if go_on(tally) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    let mut found = whole(found);
    found.violations.sort_by_key(|violation| violation.schedule.seed);
    Ok(found)
}

impl Tally {
    fn add(&mut self, arm: &'static str, report: &Report) {
        self.commands += report.commands;
        for kind in report.kinds() {
            *self.verdicts.entry((arm, kind)).or_default() += 1;
        }
    }

    /// Returns the number of runs of the arm with the verdict.
    pub fn of(&self, arm: &'static str, kind: VerdictKind) -> u64 {
        self.verdicts.get(&(arm, kind)).copied().unwrap_or_default()
    }
}

/// Returns the violation that the run of `schedule` shows, if any.
pub fn violation<S: Subject>(
    subject: &S,
    schedule: &Schedule<S::Options>,
    report: &Report,
) -> Option<Violation<S::Options>> {
    let excused = subject.excused(schedule);
    let broken: BTreeSet<VerdictKind> = report.kinds().difference(&excused).copied().collect();
    if broken.is_empty() && report.findings.is_empty() {
        return None;
    }
    let cause = Causes::of_report(subject, schedule, report).violations.into_iter().next()?;
    let findings = report.findings.iter().map(ToString::to_string).collect();
    let mut schedule = schedule.clone();
    schedule.seed = report.seed;
    schedule.expect.demand(subject.arm(), Outcome::of(report));
    Some(Violation { arm: subject.arm(), broken, findings, cause, schedule })
}

/// Removes the faults that never struck, if a run without them gives the same verdicts: a replay expects that
/// every fault strikes.
fn without_idle_faults<S: Subject>(
    subject: &S,
    violation: Violation<S::Options>,
    report: &Report,
) -> Result<Violation<S::Options>, RunError> {
    if report.struck.iter().all(|has_struck| *has_struck) {
        return Ok(violation);
    }
    let mut schedule = violation.schedule.clone();
    let mut struck = report.struck.iter();
    schedule.faults.retain(|_| struck.next().copied().unwrap_or(true));
    // A `resume` whose pause never struck is not valid without it.
    let Ok(mut sim) = sim::build(subject, &schedule) else { return Ok(violation) };
    let again = sim.run()?;
    let is_same = again.kinds() == report.kinds() && again.struck.iter().all(|has_struck| *has_struck);
    match self::violation(subject, &schedule, &again) {
        Some(shorter) if is_same => Ok(shorter),
        _ => Ok(violation),
    }
}
