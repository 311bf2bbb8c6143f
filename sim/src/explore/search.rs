//! The search itself: draws schedules, runs them on all threads, counts, and keeps the violations.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};

use resource::audit::VerdictKind;

use super::batch;
use super::cause::{Cause, Causes};
use super::feedback::Feedback;
use super::portfolio::Portfolio;
use super::repeat;
use crate::probes::Probes;
use crate::sim::{self, Outcome, Report, RunError, Schedule, Subject};

/// The most violations of one cause that a search keeps: those with the lowest seeds.
pub const KEPT_MAX: usize = 4;

/// The number of batches without anything new after which a search is stable.
const STABLE: u64 = 10;

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
    /// The seed of the first violation of the arm with this cause.
    pub firsts: BTreeMap<(&'static str, Cause), u64>,
    /// The counts of the probes, in all arms.
    pub probes: Probes,
    /// Number of different states that the runs of the last arm have reached: see
    /// [`Representation`](super::Representation).
    pub states: u64,
    /// The number of states after each batch, with the number of schedules: twice as many each time.
    pub growth: Vec<(u64, u64)>,
    /// Number of batches since the last one with a new state or a new probe.
    pub quiet_batches: u64,
    /// True if the present batch has reached something new.
    has_news: bool,
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
    /// The seed from which the search drew the schedule. The schedule's own seed is another one if it
    /// continues an earlier schedule.
    pub drawn_from: u64,
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
    /// Called before the schedule is run, with the seed from which it was drawn.
    fn begins(&self, seed: u64, schedule: &Schedule<O>) {
        let _ = (seed, schedule);
    }

    /// Called after the runs of the schedule that began last on this thread.
    fn ended(&self) {}

    /// Called for each violation, also for those of which there are enough.
    fn violation(&self, violation: &Violation<O>) {
        let _ = violation;
    }

    /// Called after each schedule, in the order of the seeds, with the counts so far, while the other threads
    /// wait to add theirs. Returns false to end the search.
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
/// draw the same schedules), on `threads` threads. Counts them in the order of `seeds`, tells `watch` of each
/// schedule and violation, and stops when it says so.
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
    let (mut tally, mut kept) = (Tally::default(), Kept::new());
    let Some((first, last)) = arms.first().zip(arms.last()) else {
        return Ok(Found { tally, violations: Vec::new() });
    };
    let mut feedback = Feedback::new(sim::survey(first)?, portfolio, None);
    let mut learning = feedback.learning();
    for seeds in batch::of(seeds) {
        let mut left = seeds.len();
        let work = |seed| {
            let schedule = feedback.draw(first, seed)?;
            watch.begins(seed, &schedule);
            let runs = arms.iter().map(|arm| Judged::run(arm, &schedule, seed));
            let runs = runs.collect::<Result<Vec<_>, RunError>>()?;
            let report = runs.last().and_then(|run| run.report.as_ref());
            if let Some(report) = report {
                repeat::watch(last, &schedule, seed, report)?;
            }
            watch.ended();
            let violations = runs.iter().filter_map(|run| run.violation.as_ref());
            violations.for_each(|violation| watch.violation(violation));
            let traits = report.map(|report| feedback.describe(report));
            Ok::<_, RunError>((schedule, runs, traits))
        };
        let merge = |(schedule, runs, traits): (Schedule<_>, Vec<Judged<_>>, Option<_>)| {
            tally.schedules += 1;
            let report = runs.last().and_then(|run| run.report.as_ref());
            if let Some((report, traits)) = report.zip(traits) {
                tally.has_news |= learning.learn(&schedule, report, &traits);
            }
            for (number, run) in runs.into_iter().enumerate() {
                tally.add(&run, number + 1 == arms.len());
                if let Some(violation) = run.violation {
                    keep(&mut kept, violation);
                }
            }
            left -= 1;
            if left == 0 {
                tally.end_batch(learning.states());
            }
            if watch.goes_on(&tally) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let flow = batch::run(threads, seeds, work, merge)?;
        tally.states = learning.states();
        if flow.is_break() {
            break;
        }
        feedback.take(&mut learning);
    }
    let mut violations: Vec<Violation<S::Options>> = kept.into_values().flatten().collect();
    violations.sort_by_key(|violation| violation.drawn_from);
    Ok(Found { tally, violations })
}

/// Keeps a violation unless there are enough of its cause with lower seeds, so that the same ones are kept
/// whichever thread comes first.
fn keep<O>(kept: &mut Kept<O>, violation: Violation<O>) {
    let alike = kept.entry((violation.arm, violation.cause.clone())).or_default();
    alike.push(violation);
    alike.sort_by_key(|violation| violation.drawn_from);
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
    /// Runs the schedule that was drawn from the seed.
    fn run<S: Subject<Options = O>>(
        subject: &S,
        schedule: &Schedule<O>,
        seed: u64,
    ) -> Result<Self, RunError> {
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
        let violation = violation.map(|violation| Violation { drawn_from: seed, ..violation });
        Ok(Self { arm: subject.arm(), report, violation })
    }
}

impl Tally {
    fn add<O>(&mut self, run: &Judged<O>, is_last_arm: bool) {
        if let Some(report) = &run.report {
            self.commands += report.commands;
            let met = self.probes.met();
            self.probes.add(&report.probes);
            self.has_news |= self.probes.met() > met;
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
            let cause = (run.arm, violation.cause.clone());
            self.firsts.entry(cause.clone()).or_insert(violation.drawn_from);
            *self.causes.entry(cause).or_default() += 1;
        }
    }

    /// Notes the end of a batch, after which there are that many states.
    fn end_batch(&mut self, states: u64) {
        self.states = states;
        self.quiet_batches = if self.has_news { 0 } else { self.quiet_batches + 1 };
        self.has_news = false;
        if self.growth.last().is_none_or(|(schedules, _)| self.schedules >= 2 * schedules) {
            self.growth.push((self.schedules, states));
        }
    }

    /// Returns true if the last ten batches of 64 schedules have reached no new state and no new probe.
    pub fn is_stable(&self) -> bool {
        self.quiet_batches >= STABLE
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
    let drawn_from = schedule.seed;
    Some(Violation { arm: subject.arm(), broken, findings, cause, drawn_from, schedule })
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
    let (broken, drawn_from) = (BTreeSet::new(), schedule.seed);
    Violation { arm: subject.arm(), broken, findings, cause, drawn_from, schedule }
}
