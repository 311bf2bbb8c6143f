//! The judgement of a run: the violation that it shows, if any.

use std::collections::BTreeSet;

use history::VerdictKind;

use super::cause::{Broken, Cause, Causes};
use crate::sim::{self, Outcome, Report, RunError, Schedule, Subject};

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
    /// The schedule. It expects the outcome of the run, so that a replay shows the violation again. The
    /// schedule of a run that panicked expects none.
    pub schedule: Schedule<O>,
}

impl<O> Violation<O> {
    /// Returns true if the run breaks this promise, first or later.
    pub fn shows(&self, broken: &Broken) -> bool {
        match broken {
            Broken::Verdict(kind) => self.broken.contains(kind),
            Broken::Check(name) => self.findings.iter().any(|finding| {
                finding.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(": "))
            }),
            Broken::Panic(_) | Broken::Escape(_) => self.cause.broken == *broken,
        }
    }
}

/// A run, and the violation that it shows.
pub(super) struct Judged<O> {
    pub(super) arm: &'static str,
    /// The seed from which its schedule was drawn.
    pub(super) seed: u64,
    /// `None` if the code under test panicked.
    pub(super) report: Option<Report>,
    pub(super) violation: Option<Violation<O>>,
}

impl<O: Clone> Judged<O> {
    /// Runs the schedule that was drawn from the seed.
    pub(super) fn run<S: Subject<Options = O>>(
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
        Ok(Self { arm: subject.arm(), seed, report, violation })
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

/// Removes the faults that never struck, if a run without them has the same verdicts: a replay expects every
/// fault to strike.
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

/// Returns the violation that a panic shows.
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
