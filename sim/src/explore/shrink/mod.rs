//! Shrinking: reduces a schedule that fails to one that a person reads in one look, and that fails in the
//! same way.
//!
//! Passes, each in a file of its own: the core phase is dropped, enlarged or begun earlier (`core`), faults
//! are dropped (`drop`), options made smaller (`options`), times of faults snapped to points of the run
//! (`snap`), lengths of time shortened (`lengths`). Before and after them the schedule is cut after the
//! violation. All are repeated until none changes anything, so shrinking twice changes nothing. A smaller
//! schedule counts only if the same [`Cause`] comes about in it, and no more faults stay idle.

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

/// The most runs that shrinking takes, unless the caller says otherwise.
pub const RUNS_MAX: u32 = 300;

/// A schedule is cut at a whole multiple of this time.
const CUT: Span = Span::from_millis(100);

/// What shrinking came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shrunk<O> {
    /// The smallest schedule that was found. It demands what its run gives, if the original demanded
    /// anything, and its `about` names the cause.
    pub schedule: Schedule<O>,
    /// How many runs it took.
    pub runs: u32,
    /// Whether no pass can make it smaller. If not, the budget was used up before.
    pub is_smallest: bool,
}

/// Shrinks a schedule that fails with `cause`, in `budget` runs at most. Returns the schedule as it is if its
/// run does not show the cause.
///
/// The same subject, schedule and cause give the same result.
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

    /// Takes the candidate if it shows the same cause. Returns whether it does.
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

    /// Drops the faults that the candidate can't have any more: those of a process that is gone, or the
    /// resumption of a pause. Such a process leaves the core phase, too. Returns `None` if it can't be run
    /// even without them.
    fn repaired(&self, mut candidate: Schedule<S::Options>) -> Option<Schedule<S::Options>> {
        loop {
            let Err(invalid) = sim::build(self.trials.subject, &candidate) else { return Some(candidate) };
            if invalid.place.is_in("core") && self.forget_outside(&mut candidate) {
                continue;
            }
            let number = invalid.place.element_of("fault")?;
            if number >= candidate.faults.len() {
                return None;
            }
            candidate.faults.remove(number);
        }
    }

    /// Drops processes that are gone from the candidate's core phase. Returns whether there were any.
    fn forget_outside(&self, candidate: &mut Schedule<S::Options>) -> bool {
        let (before, mut sim) = (candidate.core.clone(), Sim::new(candidate.seed));
        if self.trials.subject.build(&candidate.options, &mut sim).is_ok() {
            core::forget(candidate, sim.names());
        }
        candidate.core != before
    }
}
