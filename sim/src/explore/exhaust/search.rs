//! The search: runs every placement, depth first below each first fault.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use history::Name;

use super::breaks::{Break, Breaks, cause};
use super::candidate::Candidate;
use super::tree::{Placement, Placements, Places};
use crate::explore::violation::panicked;
use crate::explore::{Causes, Violation, violation};
use crate::faults::{Fault, Form, Link, Pause, Role, Trigger};
use crate::sim::{self, Report, RunError, Step};
use crate::span::Span;
use crate::world::lock;
use crate::{Schedule, Sim, Subject};

/// The results of the runs below one first fault.
#[derive(Clone, Debug)]
pub(super) struct Part<O> {
    /// Number of placements that were run.
    pub(super) runs: u64,
    /// Number of placements that the subject refuses.
    pub(super) refused: u64,
    pub(super) breaks: Breaks<O>,
    /// True if the search ended before all placements were run.
    pub(super) is_cut: bool,
}

impl<O> Default for Part<O> {
    fn default() -> Self {
        Self { runs: 0, refused: 0, breaks: Breaks::default(), is_cut: false }
    }
}

impl<O: Clone> Part<O> {
    pub(super) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.refused += other.refused;
        other.breaks.iter().for_each(|found| self.breaks.add(found.clone()));
    }
}

/// An exhaustive search of a subject, based on a schedule.
pub(super) struct Search<'a, S: Subject> {
    subject: &'a S,
    base: &'a Schedule<S::Options>,
    candidates: Vec<Candidate>,
    is_pruned: bool,
    /// True if a part ends with its first violation: it is cut, unless that was its last placement.
    ends_at_first: bool,
    /// Called before each run: true ends the search.
    pub(super) stop: fn() -> bool,
    /// For each point looked up so far, whether a fault can be aimed at it.
    points: Mutex<BTreeMap<(Name, Name), bool>>,
}

impl<'a, S: Subject> Search<'a, S> {
    pub(super) fn new(
        subject: &'a S,
        base: &'a Schedule<S::Options>,
        is_pruned: bool,
        ends_at_first: bool,
    ) -> Self {
        let (candidates, points) = (Vec::new(), Mutex::default());
        Self { subject, base, candidates, is_pruned, ends_at_first, stop: || false, points }
    }

    /// Runs the base, and lists the faults of these forms that suit its world and affect only processes in
    /// `befall`.
    pub(super) fn survey(
        &mut self,
        forms: &[Form],
        befall: Option<&BTreeSet<String>>,
    ) -> Result<Report, RunError> {
        let report = self.run(&[], true)?;
        let sim = sim::build(self.subject, self.base)?;
        let links = links(&sim, &report.steps);
        let candidates = Candidate::all(&sim, forms, &links);
        let befalls = |name: &&str| befall.is_none_or(|befall| befall.contains(*name));
        let is_valid = |candidate: &Candidate| {
            let when = Trigger::At(Span::from_nanos(1));
            candidate.what.processes().iter().all(befalls)
                && self.build(&[Fault { when, what: candidate.what.clone() }]).is_some()
        };
        self.candidates = candidates.into_iter().filter(is_valid).collect();
        Ok(report)
    }

    pub(super) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the steps at which faults can be aimed.
    pub(super) fn points<'s>(&self, steps: &'s [Step]) -> impl Iterator<Item = &'s Step> {
        steps.iter().filter(|step| self.is_point(step))
    }

    /// Returns the placements of a first fault in the run with these steps.
    pub(super) fn first_placements(&self, steps: &[Step]) -> Placements {
        self.placements(steps, 0)
    }

    /// Returns the placements of a fault at the step `first` or later.
    fn placements(&self, steps: &[Step], first: usize) -> Placements {
        let is_point = steps.iter().map(|step| self.is_point(step)).collect();
        let places = Places { steps, is_point, first };
        if self.is_pruned { places.pruned(&self.candidates) } else { places.all(&self.candidates) }
    }

    /// Runs a placement, and all placements that add up to `deeper` faults to it.
    pub(super) fn descend(
        &self,
        placement: &Placement,
        before: &[Fault],
        deeper: usize,
        part: &mut Part<S::Options>,
    ) -> Result<(), RunError> {
        let is_over = self.ends_at_first && !part.breaks.is_empty();
        part.is_cut |= is_over || (self.stop)();
        if part.is_cut {
            return Ok(());
        }
        let faults = [before, std::slice::from_ref(&placement.fault)].concat();
        let Some(run) = self.try_run(&faults, deeper > 0) else {
            part.refused += 1;
            return Ok(());
        };
        part.runs += 1;
        let report = match run {
            Ok(report) => report,
            Err(error) => return self.keep_panic(&faults, error, part),
        };
        // A placement that adds faults to one that breaks a promise shows nothing new.
        if self.judge(&faults, &report, part) || deeper == 0 {
            return Ok(());
        }
        let at = report.steps.iter().position(|step| step.is_same_point(&placement.step));
        let Some(at) = at else { return Ok(()) };
        let next = self.placements(&report.steps, at);
        next.placed.iter().try_for_each(|placement| self.descend(placement, &faults, deeper - 1, part))
    }

    /// Keeps the violation that the run shows; returns true if it shows one.
    pub(super) fn judge(&self, faults: &[Fault], report: &Report, part: &mut Part<S::Options>) -> bool {
        let violation = violation(self.subject, &self.with(faults), report);
        let is_broken = violation.is_some();
        if let Some(violation) = violation {
            self.keep(faults, violation, part);
        }
        is_broken
    }

    /// Keeps a panic of the code under test as a violation. Any other error ends the search.
    fn keep_panic(
        &self,
        faults: &[Fault],
        error: RunError,
        part: &mut Part<S::Options>,
    ) -> Result<(), RunError> {
        let schedule = self.with(faults);
        let Some(cause) = Causes::of_panic(self.subject, &schedule, &error) else { return Err(error) };
        self.keep(faults, panicked(self.subject, &schedule, &error, cause), part);
        Ok(())
    }

    fn keep(&self, faults: &[Fault], violation: Violation<S::Options>, part: &mut Part<S::Options>) {
        let mut sim = Sim::new(self.base.seed);
        // Ignored: the world was built before.
        let _ = self.subject.build(&self.base.options, &mut sim);
        let cause = cause(faults, sim.scene(), &violation);
        part.breaks.add(Break { faults: faults.len(), cause, violation });
    }

    fn is_point(&self, step: &Step) -> bool {
        let key = (step.process.clone(), step.point.clone());
        if let Some(known) = lock(&self.points).get(&key) {
            return *known;
        }
        let when = Trigger::after(step.process.as_str(), step.point.as_str());
        let sim = sim::build(self.subject, self.base).ok();
        let name = sim.and_then(|sim| sim.names().first().cloned()).unwrap_or_default();
        let pause = Pause { process: name, lasts: Some(Span::from_nanos(1)) };
        let is_point = self.build(&[Fault::new(when, pause)]).is_some();
        lock(&self.points).insert(key, is_point);
        is_point
    }

    fn with(&self, faults: &[Fault]) -> Schedule<S::Options> {
        let mut schedule = self.base.clone();
        schedule.expect = sim::Expect::default();
        schedule.faults.extend(faults.iter().cloned());
        schedule
    }

    /// Returns the world with these faults, unless the subject refuses them.
    fn build(&self, faults: &[Fault]) -> Option<Sim> {
        sim::build(self.subject, &self.with(faults)).ok()
    }

    fn run(&self, faults: &[Fault], records: bool) -> Result<Report, RunError> {
        let mut sim = sim::build(self.subject, &self.with(faults))?;
        if records {
            sim.record_steps();
        }
        sim.run()
    }

    /// Runs the base with these faults; `None` if the subject refuses them.
    fn try_run(&self, faults: &[Fault], records: bool) -> Option<Result<Report, RunError>> {
        let mut sim = self.build(faults)?;
        if records {
            sim.record_steps();
        }
        Some(sim.run())
    }
}

/// Returns the pairs of processes with a link: each client with each server and with each client that it
/// talks to.
fn links(sim: &Sim, steps: &[Step]) -> Vec<Link> {
    let scene = sim.scene();
    let is_client = |name: &str| scene.role(name) == Some(Role::Client);
    let mut links = Vec::new();
    for client in scene.with_role(Role::Client) {
        for other in scene.processes() {
            let talks = |step: &Step| step.process.as_str() == client && step.peer() == Some(other.as_str());
            let is_known = links.contains(&Link::new(&other, &client));
            if !is_known && (!is_client(&other) || steps.iter().any(talks)) {
                links.push(Link::new(&client, &other));
            }
        }
    }
    links
}
