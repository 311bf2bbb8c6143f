//! Exploration: random schedules of a subject, in search of a verdict that nothing explains.
//!
//! Some verdicts are known limits of what a schedule uses: [`Subject::excused`] states them. A verdict beyond
//! them, or a check that does not hold, is a violation: of the lock, of the resource, or of the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use resource::audit::VerdictKind;

use crate::pool;
use crate::probes::Probes;
use crate::sim::{self, Draw, Outcome, Report, RunError, Schedule, Subject};
use crate::world::lock;

/// What a search has found so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many schedules were run, each in every arm.
    pub schedules: u64,
    /// How many faults struck, in the last arm.
    pub faults: u64,
    /// How many requests the servers carried out.
    pub commands: u64,
    /// How many runs of each arm had each verdict.
    pub verdicts: BTreeMap<(&'static str, VerdictKind), u64>,
    /// How many writes the resource refused, in the last arm.
    pub refused: u64,
    /// How many runs broke a promise.
    pub violations: u64,
    /// What the probes have shown, in all arms.
    pub probes: Probes,
}

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Violation<O> {
    /// The arm that broke it.
    pub arm: &'static str,
    /// The verdicts that nothing explains.
    pub broken: BTreeSet<VerdictKind>,
    /// The checks that did not hold, with what is wrong.
    pub findings: Vec<String>,
    /// The schedule, which demands what the run gave: replaying it shows the violation again.
    pub schedule: Schedule<O>,
}

/// What a search came to.
#[derive(Clone, Debug)]
pub struct Found<O> {
    /// Counts over all schedules.
    pub tally: Tally,
    /// The runs that broke a promise, in the order of their seeds.
    pub violations: Vec<Violation<O>>,
}

/// Draws schedules from `seeds` and runs each of them on every one of `arms` (subjects that draw the same),
/// on `threads` threads, as long as `go_on` says so; it is given the tally after each schedule. Violations
/// come in the order of their seeds.
///
/// # Errors
///
/// [`RunError`] if a run fails; the search then ends.
pub fn explore<S: Subject>(
    arms: &[S],
    seeds: Range<u64>,
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
        self.probes.add(&report.probes);
        for kind in report.kinds() {
            *self.verdicts.entry((arm, kind)).or_default() += 1;
        }
    }

    /// How many runs of the arm had the verdict.
    pub fn of(&self, arm: &'static str, kind: VerdictKind) -> u64 {
        self.verdicts.get(&(arm, kind)).copied().unwrap_or_default()
    }
}

/// The violation that the run of `schedule` shows, if it shows one.
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
    let findings = report.findings.iter().map(ToString::to_string).collect();
    let mut schedule = schedule.clone();
    schedule.seed = report.seed;
    schedule.expect.demand(subject.arm(), Outcome::of(report));
    Some(Violation { arm: subject.arm(), broken, findings, schedule })
}

/// The violation without the faults that never struck, if a run without them shows the same: a schedule whose
/// faults do not all strike is not as expected when it is replayed.
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
