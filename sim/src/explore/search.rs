//! The search itself: draws schedules, runs them on all threads, counts, and keeps the violations.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use resource::audit::VerdictKind;

use super::cause::{Cause, Causes};
use super::portfolio::Portfolio;
use super::repeat;
use crate::meter::{self, Part};
use crate::pool;
use crate::probes::Probes;
use crate::sim::{self, Draw, Outcome, Report, RunError, Schedule, Subject};
use crate::world::lock;

/// The most violations of one cause that a search keeps: those with the lowest seeds.
pub const KEPT_MAX: usize = 4;

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
    /// Number of runs of the arm whose first violation has this cause.
    pub causes: BTreeMap<(&'static str, Cause), u64>,
    /// The counts of the probes, in all arms.
    pub probes: Probes,
}

/// A run with a verdict that nothing explains, with a check that did not hold, or with a panic.
#[derive(Clone, Debug)]
pub struct Violation<O> {
    /// The arm of the run.
    pub arm: &'static str,
    /// The verdicts that nothing explains.
    pub broken: BTreeSet<VerdictKind>,
    /// The checks that did not hold, each with its problem, or the panic.
    pub findings: Vec<String>,
    /// The cause of the first violation in the run.
    pub cause: Cause,
    /// The schedule. It expects the outcome of the run, so that a replay shows the violation again; a run
    /// that panicked has no outcome.
    pub schedule: Schedule<O>,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found<O> {
    /// Counts over all schedules.
    pub tally: Tally,
    /// The violations, in the order of their seeds; of each cause at most [`KEPT_MAX`].
    pub violations: Vec<Violation<O>>,
}

/// Follows a search: what it finds, and whether it goes on.
///
/// All methods but [`goes_on`](Watch::goes_on) are called on the thread of the schedule, so that the other
/// threads search on meanwhile.
pub trait Watch<O>: Sync {
    /// Called before the schedule is run.
    fn begins(&self, schedule: &Schedule<O>) {
        let _ = schedule;
    }

    /// Called after the runs of the schedule that began last on this thread.
    fn ended(&self) {}

    /// Called for each violation, also for those of which there are enough.
    fn violation(&self, violation: &Violation<O>) {
        let _ = violation;
    }

    /// Called after each schedule with the counts so far, while the other threads wait to add theirs. Returns
    /// false to end the search.
    fn goes_on(&self, tally: &Tally) -> bool;
}

/// The violations kept so far, by arm and cause.
type Kept<O> = BTreeMap<(&'static str, Cause), Vec<Violation<O>>>;

/// Draws schedules from `seeds` and runs them, as [`explore_watched`] does. Calls `go_on` with the tally
/// after each schedule, and stops when it returns false.
///
/// # Errors
///
/// As [`explore_watched`].
pub fn explore<S: Subject>(
    arms: &[S],
    seeds: Range<u64>,
    portfolio: &Portfolio,
    threads: usize,
    go_on: impl Fn(&Tally) -> bool + Sync,
) -> Result<Found<S::Options>, RunError> {
    explore_watched(arms, seeds, portfolio, threads, &GoOn(go_on))
}

/// Asks a closure whether the search goes on.
struct GoOn<F>(F);

impl<O, F: Fn(&Tally) -> bool + Sync> Watch<O> for GoOn<F> {
    fn goes_on(&self, tally: &Tally) -> bool {
        self.0(tally)
    }
}

/// Draws schedules from `seeds` by the strategies of `portfolio` and runs each in all `arms` (subjects that
/// draw the same schedules), on `threads` threads. Tells `watch` of each schedule and violation, and stops
/// when it says so.
///
/// A panic of the code under test is a violation. One schedule in 19 is run a second time in the last arm.
///
/// # Errors
///
/// [`RunError`] if a world can't be built or run, or if a second run differs; the search then ends.
pub fn explore_watched<S: Subject>(
    arms: &[S],
    seeds: impl Iterator<Item = u64> + Send,
    portfolio: &Portfolio,
    threads: usize,
    watch: &impl Watch<S::Options>,
) -> Result<Found<S::Options>, RunError> {
    let found = Mutex::new((Tally::default(), Kept::new()));
    let points = arms.first().map(sim::survey).transpose()?.unwrap_or_default();
    pool::run(threads, seeds, |seed| -> Result<_, RunError> {
        let Some(first) = arms.first() else { return Ok(ControlFlow::Break(())) };
        let mut from = Draw::surveyed(seed, &points).by(portfolio.of(seed));
        let charge = meter::charge(Part::Draw);
        let schedule = first.schedule(&mut from)?;
        drop(charge);
        watch.begins(&schedule);
        let runs = arms.iter().map(|arm| Judged::run(arm, &schedule));
        let runs = runs.collect::<Result<Vec<_>, RunError>>()?;
        if let (Some(arm), Some(Judged { report: Some(report), .. })) = (arms.last(), runs.last()) {
            repeat::watch(arm, &schedule, report)?;
        }
        watch.ended();
        runs.iter().filter_map(|run| run.violation.as_ref()).for_each(|violation| watch.violation(violation));
        let mut found = lock(&found);
        let (tally, kept) = &mut *found;
        tally.schedules += 1;
        for (number, run) in runs.into_iter().enumerate() {
            tally.add(&run, number + 1 == arms.len());
            if let Some(violation) = run.violation {
                keep(kept, violation);
            }
        }
        Ok(if watch.goes_on(tally) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    let (tally, kept) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut violations: Vec<Violation<S::Options>> = kept.into_values().flatten().collect();
    violations.sort_by_key(|violation| violation.schedule.seed);
    Ok(Found { tally, violations })
}

/// Keeps a violation unless there are enough of its cause with lower seeds, so that the same ones are kept
/// whichever thread comes first.
fn keep<O>(kept: &mut Kept<O>, violation: Violation<O>) {
    let alike = kept.entry((violation.arm, violation.cause.clone())).or_default();
    alike.push(violation);
    alike.sort_by_key(|violation| violation.schedule.seed);
    alike.truncate(KEPT_MAX);
}

/// A run, and the violation that it shows.
struct Judged<O> {
    arm: &'static str,
    /// `None` if the code under test panicked.
    report: Option<Report>,
    violation: Option<Violation<O>>,
}

impl<O: Clone> Judged<O> {
    fn run<S: Subject<Options = O>>(subject: &S, schedule: &Schedule<O>) -> Result<Self, RunError> {
        let (report, violation) = match sim::run(subject, schedule) {
            Ok(report) => {
                let violation = violation(subject, schedule, &report);
                let violation = violation
                    .map(|violation| without_idle_faults(subject, violation, &report))
                    .transpose()?;
                (Some(report), violation)
            }
            Err(error) => {
                let Some(cause) = Causes::of_panic(subject, schedule, &error) else { return Err(error) };
                (None, Some(panicked(subject, schedule, &error, cause)))
            }
        };
        Ok(Self { arm: subject.arm(), report, violation })
    }
}

impl Tally {
    fn add<O>(&mut self, run: &Judged<O>, is_last_arm: bool) {
        if let Some(report) = &run.report {
            self.commands += report.commands;
            self.probes.add(&report.probes);
            for kind in report.kinds() {
                *self.verdicts.entry((run.arm, kind)).or_default() += 1;
            }
            if is_last_arm {
                self.faults += report.faults_struck() as u64;
                self.refused += report.summary().refused.len() as u64;
            }
        }
        if let Some(violation) = &run.violation {
            self.violations += 1;
            *self.causes.entry((run.arm, violation.cause.clone())).or_default() += 1;
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

/// Returns the violation that a panic is.
pub(super) fn panicked<S: Subject>(
    subject: &S,
    schedule: &Schedule<S::Options>,
    error: &RunError,
    cause: Cause,
) -> Violation<S::Options> {
    let (schedule, findings) = (schedule.clone(), vec![error.to_string()]);
    Violation { arm: subject.arm(), broken: BTreeSet::new(), findings, cause, schedule }
}
