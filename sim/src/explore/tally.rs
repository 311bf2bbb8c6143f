//! The counts of a search.

use std::collections::BTreeMap;

use history::VerdictKind;

use super::cause::Cause;
use super::violation::Judged;
use crate::probes::Probes;

/// The number of batches without anything new after which a search is stable.
const STABLE: u64 = 10;

/// The counts of a search.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of schedules, each run in every arm.
    pub schedules: u64,
    /// Number of runs in all arms, including those that were repeated for comparison.
    pub runs: u64,
    /// Number of further runs: those without new faults by which some strategies learn the points of a
    /// schedule.
    pub learning_runs: u64,
    /// Number of faults that struck, in the last arm.
    pub faults: u64,
    /// Number of requests that the servers carried out, in all arms.
    pub commands: u64,
    /// Number of runs of the arm with the verdict.
    pub verdicts: BTreeMap<(&'static str, VerdictKind), u64>,
    /// The seed of the first schedule whose run of the arm has the verdict, explained or not.
    pub seen_first: BTreeMap<(&'static str, VerdictKind), u64>,
    /// Number of runs of the arm with the verdict, where nothing in their schedule explains it.
    pub broken: BTreeMap<(&'static str, VerdictKind), u64>,
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
    /// Number of different states that the runs of the last arm have reached: events, each in a state of
    /// locks and clocks.
    pub states: u64,
    /// The number of states after each batch, with the number of schedules: twice as many each time.
    pub growth: Vec<(u64, u64)>,
    /// Number of batches since the last one with a new state or a new probe.
    pub quiet_batches: u64,
    /// True if the present batch has reached something new.
    pub(super) has_news: bool,
}

impl Tally {
    pub(super) fn add<O>(&mut self, run: &Judged<O>, is_last_arm: bool) {
        if let Some(report) = &run.report {
            self.commands += report.commands;
            let met = self.probes.met();
            self.probes.add(&report.probes);
            self.has_news |= self.probes.met() > met;
            for kind in report.kinds() {
                *self.verdicts.entry((run.arm, kind)).or_default() += 1;
                self.seen_first.entry((run.arm, kind)).or_insert(run.seed);
            }
            if is_last_arm {
                self.faults += report.faults_struck() as u64;
                self.refused += report.summary().refused.len() as u64;
            }
        }
        if let Some(violation) = &run.violation {
            self.violations += 1;
            for kind in &violation.broken {
                *self.broken.entry((run.arm, *kind)).or_default() += 1;
            }
            let cause = (run.arm, violation.cause.clone());
            self.firsts.entry(cause.clone()).or_insert(violation.drawn_from);
            *self.causes.entry(cause).or_default() += 1;
        }
    }

    /// Ends a batch, after which there are this many states.
    pub(super) fn end_batch(&mut self, states: u64) {
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

    /// Returns the number of runs of the arm with the verdict whose own schedules explain it: by faults, or
    /// by a resource that checks no tokens.
    pub fn explained(&self, arm: &'static str, kind: VerdictKind) -> u64 {
        self.of(arm, kind) - self.broken.get(&(arm, kind)).copied().unwrap_or_default()
    }

    /// Returns the number of runs of the arm with the verdict.
    pub fn of(&self, arm: &'static str, kind: VerdictKind) -> u64 {
        self.verdicts.get(&(arm, kind)).copied().unwrap_or_default()
    }
}
