//! The feedback strategy: continues schedules whose runs have reached something new.
//!
//! A schedule that reached something new is kept with the time at which it did. A later schedule has the same
//! options and seed and the faults up to that time, so that its run reaches the same; from then on its
//! randomness is re-keyed and its faults are drawn anew.

use std::sync::{Arc, OnceLock};

use resource::audit::Kind;

use super::novelty::{Reached, Representation, Traits};
use super::portfolio::Portfolio;
use crate::entropy::Site;
use crate::faults::{Fault, Faults, Trigger};
use crate::meter::{self, Part};
use crate::place::Invalid;
use crate::sim::{self, Draw, Points, Rekey, Report, Schedule, Step, Strategy, Subject};
use crate::span::Span;

/// The largest number of schedules that are kept; the oldest are forgotten first.
const KEPT_MAX: usize = 512;

/// The number of kept schedules that count as recent: half of the draws continue one of them.
const RECENT: u64 = 24;

/// The largest number of faults that are drawn for the rest of a run.
const FAULTS_MAX: u64 = 3;

/// A schedule that has reached something new.
pub(super) struct Parent<O> {
    schedule: Schedule<O>,
    /// True for each fault that had struck by then.
    prefix: Vec<bool>,
    /// The true time at which its run did, in nanoseconds.
    at: u64,
    /// The steps of its run from then on, once they are needed.
    steps: OnceLock<Vec<Step>>,
}

/// What a search has learnt of its subject.
pub(super) struct Feedback<O> {
    points: Arc<Points>,
    portfolio: Portfolio,
    faults: Option<Faults>,
    representation: Representation,
    parents: Vec<Parent<O>>,
}

/// What the runs of a search have reached, and what the present batch adds to it.
pub(super) struct Learning<O> {
    reached: Reached,
    keeps: bool,
    learnt: Vec<Parent<O>>,
}

impl<O: Clone> Feedback<O> {
    /// Returns what a search knows at its beginning: the points at which faults may be aimed.
    pub(super) fn new(points: Arc<Points>, portfolio: &Portfolio, faults: Option<&Faults>) -> Self {
        Self {
            points,
            portfolio: portfolio.clone(),
            faults: faults.cloned(),
            representation: portfolio.representation(),
            parents: Vec::new(),
        }
    }

    /// Draws the schedule of the seed by its strategy. That of the feedback strategy depends on the batches
    /// before; while nothing is kept, it is drawn as [`Strategy::Feedback`] says.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if no world can be built from the drawn options.
    pub(super) fn draw<S: Subject<Options = O>>(
        &self,
        subject: &S,
        seed: u64,
    ) -> Result<Schedule<O>, Invalid> {
        let _charge = meter::charge(Part::Draw);
        let strategy = self.portfolio.of(seed);
        let from = Draw::surveyed(seed, &self.points).by(strategy);
        let mut from = from.with_faults(self.faults.as_ref());
        if strategy == Strategy::Feedback
            && let Some(parent) = self.parent(&mut from.site("feedback parent"))
        {
            let known = self.faults.clone().unwrap_or_else(|| subject.faults());
            if let Some(schedule) = parent.continued(subject, &from, &known) {
                return Ok(schedule);
            }
        }
        subject.schedule(&mut from)
    }

    /// Describes the run.
    pub(super) fn describe(&self, report: &Report) -> Traits {
        let _charge = meter::charge(Part::Audit);
        Traits::of(report, self.representation)
    }

    /// Returns what is known of runs before the first.
    pub(super) fn learning(&self) -> Learning<O> {
        Learning { reached: Reached::default(), keeps: self.portfolio.has_feedback(), learnt: Vec::new() }
    }

    /// Lets later schedules continue those of the batch that has ended.
    pub(super) fn add(&mut self, mut learnt: Vec<Parent<O>>) {
        self.parents.append(&mut learnt);
        let surplus = self.parents.len().saturating_sub(KEPT_MAX);
        self.parents.drain(..surplus);
    }

    fn parent(&self, site: &mut Site) -> Option<&Parent<O>> {
        let (all, is_recent) = (self.parents.len() as u64, site.chance(0.5));
        let among = if is_recent { all.min(RECENT) } else { all };
        self.parents.get((all - among + site.below(among)) as usize)
    }
}

impl<O: Clone> Learning<O> {
    /// Learns from the run of a schedule, in the order of the seeds. Returns true if it reached something new.
    pub(super) fn learn(&mut self, schedule: &Schedule<O>, report: &Report, traits: &Traits) -> bool {
        let Some(at) = self.reached.add(traits) else { return false };
        if self.keeps {
            let prefix = struck_by(report, at);
            let schedule = schedule.clone();
            self.learnt.push(Parent { schedule, prefix, at, steps: OnceLock::new() });
        }
        true
    }

    /// Takes the schedules of the batch that has ended.
    pub(super) fn end_batch(&mut self) -> Vec<Parent<O>> {
        std::mem::take(&mut self.learnt)
    }

    /// Returns the number of different states that runs have reached.
    pub(super) fn states(&self) -> u64 {
        self.reached.count()
    }
}

impl<O: Clone> Parent<O> {
    /// Returns a schedule that begins as this one and goes on by the draws of `from`. Returns `None` if no
    /// world can be built of the beginning alone.
    fn continued<S: Subject<Options = O>>(
        &self,
        subject: &S,
        from: &Draw,
        known: &Faults,
    ) -> Option<Schedule<O>> {
        let mut schedule = self.schedule.clone();
        let mut prefix = self.prefix.iter();
        schedule.faults.retain(|_| prefix.next().copied().unwrap_or_default());
        schedule.about = format!("drawn from seed {}, {}", from.seed(), Strategy::Feedback);
        schedule.rekey.retain(|rekey| rekey.at.as_nanos() < self.at);
        schedule.rekey.push(Rekey { at: Span::from_nanos(self.at), seed: from.seed() });
        let sim = sim::build(subject, &schedule).ok()?;
        let scale = sim.scale_of_faults();
        let steps = self.steps.get_or_init(|| self.later_steps(subject));
        let mut site = from.site("feedback");
        let points = &Points::new();
        let count = 1 + site.below(FAULTS_MAX);
        for number in 1..=count {
            let mut site = from.site(&format!("feedback fault {number}"));
            let Some(fault) = known.draw(&sim.surveyed(points), &mut site) else { continue };
            let fault = Fault { when: self.later(steps, scale, &mut site), ..fault };
            schedule.faults.push(fault);
            // Leaves out a fault that can't be added.
            if sim::build(subject, &schedule).is_err() {
                schedule.faults.pop();
            }
        }
        schedule.limit = subject.limit(&schedule);
        Some(schedule)
    }

    /// Returns the steps of the run after the prefix.
    fn later_steps<S: Subject<Options = O>>(&self, subject: &S) -> Vec<Step> {
        let mut steps = sim::steps(subject, &self.schedule);
        steps.retain(|step| step.at > self.at);
        steps
    }

    /// Draws a moment after the prefix: mostly a step, and mostly one that comes soon.
    fn later(&self, steps: &[Step], scale: Span, site: &mut Site) -> Trigger {
        let (is_step, is_soon) = (site.chance(0.75), site.chance(0.6));
        let (at, wait) = (site.u64(), site.below(2 * scale.as_nanos() / 1_000_000));
        let plus = if site.chance(0.25) { Span::from_millis(1 + wait / 2) } else { Span::ZERO };
        let soon = steps.partition_point(|step| step.at <= self.at + 2 * scale.as_nanos());
        let among = if is_soon && soon > 0 { soon } else { steps.len() };
        match steps.get((at % among.max(1) as u64) as usize) {
            Some(step) if is_step => Trigger::After {
                process: step.process.to_string(),
                point: step.point.to_string(),
                nth: step.nth,
                plus,
            },
            _ => Trigger::At(Span::from_nanos(self.at).plus(Span::from_millis(1 + wait))),
        }
    }
}

/// Returns for each fault of the run's schedule whether it had struck by the true time `at`.
fn struck_by(report: &Report, at: u64) -> Vec<bool> {
    let mut struck = report.struck.clone();
    let mut first = vec![None; struck.len()];
    for event in &report.events {
        if let Kind::FaultApplied { fault, .. } = &event.kind
            && let Some(first) = usize::try_from(*fault).ok().and_then(|fault| first.get_mut(fault))
        {
            first.get_or_insert(event.at.0);
        }
    }
    for (struck, first) in struck.iter_mut().zip(first) {
        *struck &= first.is_none_or(|first| first <= at);
    }
    struck
}
