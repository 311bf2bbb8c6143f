//! Shrinking: reduces a schedule that fails to one that a person understands at once, and that fails in the
//! same way.
//!
//! Each pass has a file of its own: it drops, enlarges or begins earlier the core phase (`core`), drops
//! faults (`drop`), makes options smaller (`options`), snaps times of faults to points of the run (`snap`),
//! or shortens lengths of time (`lengths`). Before and after the passes the schedule is cut after the
//! violation. All are repeated until none changes anything, so shrinking twice changes nothing. A smaller
//! schedule counts only if it shows the same [`Cause`] and no more of its faults stay idle.

mod core;
mod drop;
mod lengths;
mod options;
mod snap;

use super::cause::Cause;
use super::trial::Trials;
use crate::faults::Fault;
use crate::sim::{self, Expect, Outcome, Report, RunError, Schedule, Sim, Subject};
use crate::span::Span;

/// The largest number of runs of shrinking, unless the caller sets another.
pub const RUNS_MAX: u32 = 300;

/// A schedule is cut at a whole multiple of this time.
const CUT: Span = Span::from_millis(100);

/// The result of shrinking.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shrunk<O> {
    /// The smallest schedule that was found. It expects the outcome of its run, if the original expected one,
    /// and its `about` names the cause.
    pub schedule: Schedule<O>,
    /// The number of runs that shrinking took.
    pub runs: u32,
    /// True if no pass can make it smaller; false if the budget was used up before.
    pub is_smallest: bool,
}

/// Shrinks a schedule that fails with `cause`, in at most `budget` runs. Returns the schedule unchanged if
/// its run does not show the cause.
///
/// The same subject, schedule and cause give the same result.
///
/// # Example
///
/// ```
/// # mod overlap { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/overlap.rs")); }
/// # use overlap::turns_by_clock;
/// # use sim::explore::{Portfolio, explore};
/// use sim::explore::{RUNS_MAX, shrink};
///
/// # let go_on = |tally: &sim::explore::Tally| tally.violations == 0;
/// # let found = explore(&[turns_by_clock], 0..1_000, &Portfolio::default(), 1, go_on)?;
/// let violation = &found.violations[0];
/// let shrunk = shrink(&turns_by_clock, &violation.schedule, &violation.cause, RUNS_MAX);
/// assert_eq!(shrunk.schedule.faults.len(), 1);
/// println!("{}", shrunk.schedule.to_toml());
/// # Ok::<(), sim::RunError>(())
/// ```
pub fn shrink<S: Subject>(
    subject: &S,
    schedule: &Schedule<S::Options>,
    cause: &Cause,
    budget: u32,
) -> Shrunk<S::Options> {
    let mut bare = schedule.clone();
    bare.expect = Expect::default();
    let Some((trials, run)) = Trials::begin(subject, cause, &bare, budget) else {
        return Shrunk { schedule: schedule.clone(), runs: 1, is_smallest: false };
    };
    let mut shrinking = Shrinking { trials, best: bare, run };
    shrinking.until_smallest();
    let Shrinking { trials, mut best, run } = shrinking;
    if let Some(report) = run.ok().filter(|_| !schedule.expect.is_empty()) {
        best.expect.demand(subject.arm(), Outcome::of(&report));
    }
    best.about = cause.name_in(&best.about);
    Shrunk { schedule: best, runs: trials.runs, is_smallest: !trials.is_over() }
}

/// The smallest schedule so far, with its run.
struct Shrinking<'a, S: Subject> {
    trials: Trials<'a, S>,
    best: Schedule<S::Options>,
    run: Result<Report, RunError>,
}

impl<S: Subject> Shrinking<'_, S> {
    fn until_smallest(&mut self) {
        loop {
            let before = self.best.clone();
            self.cut();
            core::enlarge(self);
            drop::faults(self);
            options::smaller(self);
            snap::to_points(self);
            drop::parts(self);
            lengths::shorten(self);
            core::begin_earlier(self);
            self.cut();
            if self.best == before || self.trials.is_over() {
                return;
            }
        }
    }

    /// Cuts the schedule after the violation.
    fn cut(&mut self) {
        let Some(verdict) = self.trials.verdict(&self.best, &self.run) else { return };
        let limit = CUT.times(verdict.at.0 / CUT.as_nanos() + 1);
        if limit < self.best.limit {
            self.offer(Schedule { limit, ..self.best.clone() });
        }
    }

    /// Takes the candidate if it shows the same cause. Returns true if it does.
    fn offer(&mut self, candidate: Schedule<S::Options>) -> bool {
        let Some(candidate) = self.repaired(candidate) else { return false };
        let Some(run) = self.trials.take(&candidate) else { return false };
        (self.best, self.run) = (candidate, run);
        true
    }

    /// Offers the schedule with another fault in place of the one with this number.
    fn offer_fault(&mut self, number: usize, fault: Fault) -> bool {
        let mut candidate = self.best.clone();
        candidate.faults[number] = fault;
        self.offer(candidate)
    }

    /// Drops the faults that the candidate can no longer have: those of a process that is gone, or the
    /// resumption of a pause. Drops a process that is gone from the core phase, too. Returns `None` if the
    /// candidate can't be run even without them.
    fn repaired(&self, mut candidate: Schedule<S::Options>) -> Option<Schedule<S::Options>> {
        loop {
            let Err(invalid) = sim::build(self.trials.subject, &candidate) else { return Some(candidate) };
            if invalid.path.is_in("core") && self.forget_outside(&mut candidate) {
                continue;
            }
            let number = invalid.path.element_of("fault")?;
            if number >= candidate.faults.len() {
                return None;
            }
            candidate.faults.remove(number);
        }
    }

    /// Drops processes that are gone from the candidate's core phase. Returns true if there were any.
    fn forget_outside(&self, candidate: &mut Schedule<S::Options>) -> bool {
        let (before, mut sim) = (candidate.core.clone(), Sim::new(candidate.seed));
        if self.trials.subject.build(&candidate.options, &mut sim).is_ok() {
            core::forget(candidate, sim.names());
        }
        candidate.core != before
    }
}
