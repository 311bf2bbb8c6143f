//! Trials: runs of variants of one schedule, which show if the same cause comes about.

use std::collections::BTreeMap;

use history::Verdict;

use super::cause::{Cause, Causes, verdict_with};
use crate::sim::{self, Report, RunError, Schedule, Subject};

/// The runs of variants of a schedule, in search of one cause. A variant in which more faults stay idle than
/// in the last schedule that was taken does not count.
pub(super) struct Trials<'a, S: Subject> {
    pub(super) subject: &'a S,
    pub(super) cause: &'a Cause,
    /// The number of runs so far.
    pub(super) runs: u32,
    /// The largest number of runs.
    budget: u32,
    /// True if the cause counts although the schedule excuses it, since the first schedule excuses it, too.
    counts_excused: bool,
    /// The largest number of faults that may stay idle.
    idle_max: usize,
    /// The schedules that were tried, as text; true for those that show the cause.
    known: BTreeMap<String, bool>,
}

impl<'a, S: Subject> Trials<'a, S> {
    /// Runs `schedule`, and returns its run with the trials. Returns `None` if the run does not show the
    /// cause.
    pub(super) fn begin(
        subject: &'a S,
        cause: &'a Cause,
        schedule: &Schedule<S::Options>,
        budget: u32,
    ) -> Option<(Self, Result<Report, RunError>)> {
        let run = sim::run(subject, schedule);
        let causes = Causes::of(subject, schedule, &run);
        let is_violation = causes.violations.contains(cause);
        if !is_violation && !causes.excused.contains(cause) {
            return None;
        }
        let known = BTreeMap::from([(schedule.to_toml(), true)]);
        let (counts_excused, idle_max) = (!is_violation, idle(&run));
        Some((Self { subject, cause, runs: 1, budget, counts_excused, idle_max, known }, run))
    }

    /// Returns true if no run is left.
    pub(super) fn is_over(&self) -> bool {
        self.runs >= self.budget
    }

    /// Runs a schedule, and returns its run if it shows the cause. Later schedules may have no more idle
    /// faults. Returns `None` for a schedule that was tried before, and if no run is left.
    pub(super) fn take(&mut self, schedule: &Schedule<S::Options>) -> Option<Result<Report, RunError>> {
        let text = schedule.to_toml();
        if self.is_over() || self.known.contains_key(&text) {
            return None;
        }
        let run = self.run(schedule);
        self.known.insert(text, run.is_some());
        self.idle_max = run.as_ref().map_or(self.idle_max, idle);
        run
    }

    /// Returns true if a run of the schedule shows the cause.
    pub(super) fn shows(&mut self, schedule: &Schedule<S::Options>) -> bool {
        let text = schedule.to_toml();
        if let Some(known) = self.known.get(&text) {
            return *known;
        }
        let shows = !self.is_over() && self.run(schedule).is_some();
        self.known.insert(text, shows);
        shows
    }

    /// Returns the verdict that has the cause, if the cause is about one.
    pub(super) fn verdict<'r>(
        &self,
        schedule: &Schedule<S::Options>,
        run: &'r Result<Report, RunError>,
    ) -> Option<&'r Verdict> {
        verdict_with(self.cause, self.subject, schedule, run.as_ref().ok()?)
    }

    fn run(&mut self, schedule: &Schedule<S::Options>) -> Option<Result<Report, RunError>> {
        let mut sim = sim::build(self.subject, schedule).ok()?;
        self.runs += 1;
        let run = sim.run();
        if idle(&run) > self.idle_max {
            return None;
        }
        let causes = Causes::of(self.subject, schedule, &run);
        let is_excused = self.counts_excused && causes.excused.contains(self.cause);
        (is_excused || causes.violations.contains(self.cause)).then_some(run)
    }
}

/// Returns the number of faults that never struck; 0 for a run that ended in a panic.
fn idle(run: &Result<Report, RunError>) -> usize {
    let struck = run.iter().flat_map(|report| &report.struck);
    struck.filter(|has_struck| !**has_struck).count()
}
