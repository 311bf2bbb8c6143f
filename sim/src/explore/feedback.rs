//! The feedback strategy: continues schedules whose runs have reached something new.
//!
//! A schedule that reached something new is kept, with the time at which it did. A later schedule has the
//! same options, seed and faults up to that time, so that its run reaches the same. From then on its
//! randomness is re-keyed and its faults are drawn anew.

use std::sync::{Arc, OnceLock};

use history::Kind;

use super::novelty::{New, Reached, Traits};
use super::portfolio::Portfolio;
use crate::entropy::Site;
use crate::faults::{Fault, Faults, Trigger};
use crate::field_path::Invalid;
use crate::sim::{self, Draw, Points, Rekey, Report, Schedule, Sim, Step, Strategy, Subject};
use crate::span::Span;

/// The largest number of schedules that are kept; the oldest are forgotten first.
const KEPT_MAX: usize = 512;

/// The number of kept schedules that count as recent: half of the draws continue one of them.
const RECENT: u64 = 24;

/// The largest number of faults in the beginning of a schedule that is kept. With more, most runs show
/// nothing but their effects.
const PREFIX_MAX: usize = 3;

/// The number of kept schedules among which the one reached least often is continued.
const CONTENDERS: u64 = 3;

/// The share of the continued schedules that have a fault at a time instead of faults at points.
const TIMED: f64 = 0.15;

/// A schedule that has reached something new.
pub(super) struct Parent<O> {
    schedule: Schedule<O>,
    /// True for each fault that had struck when the run reached the new feature.
    prefix: Vec<bool>,
    /// The feature that was new.
    new: New,
    /// The number of runs that have reached the feature by now.
    count: u64,
    /// The steps of its run from then on, once they are needed.
    steps: OnceLock<Vec<Step>>,
}

/// The knowledge of a search about its subject.
pub(super) struct Feedback<O> {
    points: Arc<Points>,
    portfolio: Portfolio,
    faults: Option<Faults>,
    parents: Vec<Parent<O>>,
}

/// The features that the runs of a search have reached, and the schedules that the present batch adds.
pub(super) struct Learning<O> {
    reached: Reached,
    keeps: bool,
    learnt: Vec<Parent<O>>,
}

impl<O: Clone> Feedback<O> {
    /// Creates the knowledge at the start of a search: the points at which faults may be aimed.
    pub(super) fn new(points: Arc<Points>, portfolio: &Portfolio, faults: Option<&Faults>) -> Self {
        Self { points, portfolio: portfolio.clone(), faults: faults.cloned(), parents: Vec::new() }
    }

    /// Draws the schedule of the seed by its strategy, and returns it with the number of runs that this took.
    /// The feedback strategy depends on the batches before. While no schedule is kept, it draws as
    /// [`Strategy::Feedback`] says.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if no world can be built from the drawn options.
    pub(super) fn draw<S: Subject<Options = O>>(
        &self,
        subject: &S,
        seed: u64,
    ) -> Result<(Schedule<O>, u64), Invalid> {
        let strategy = self.portfolio.of(seed);
        let from = Draw::surveyed(seed, &self.points).by(strategy);
        let mut from = from.with_faults(self.faults.as_ref());
        if strategy == Strategy::Feedback
            && let Some(parent) = self.parent(&mut from.site("feedback parent"))
        {
            let known = self.faults.clone().unwrap_or_else(|| subject.faults());
            if let Some(continued) = parent.continued(subject, &from, &known) {
                return Ok(continued);
            }
        }
        Ok((subject.schedule(&mut from)?, strategy.learning_runs()))
    }

    pub(super) fn describe(&self, report: &Report) -> Traits {
        Traits::of(report)
    }

    /// Returns the state before the first run.
    pub(super) fn learning(&self) -> Learning<O> {
        Learning { reached: Reached::default(), keeps: self.portfolio.has_feedback(), learnt: Vec::new() }
    }

    /// Ends a batch: later schedules may continue those of the batch.
    pub(super) fn take(&mut self, learning: &mut Learning<O>) {
        self.parents.append(&mut learning.learnt);
        let surplus = self.parents.len().saturating_sub(KEPT_MAX);
        self.parents.drain(..surplus);
        self.parents.iter_mut().for_each(|parent| parent.count = learning.reached.times(parent.new));
    }

    /// Draws the schedule to continue: of a few, the one whose feature was reached least often. Each
    /// continuation reaches the feature again, so other schedules get their turn. From Böhme et al.,
    /// "Coverage-based Greybox Fuzzing as Markov Chain", CCS 2016.
    fn parent(&self, site: &mut Site) -> Option<&Parent<O>> {
        let (all, is_recent) = (self.parents.len() as u64, site.chance(0.5));
        let among = if is_recent { all.min(RECENT) } else { all };
        let contenders = (0..CONTENDERS).map(|_| (all - among + site.below(among)) as usize);
        let contenders = contenders.filter_map(|at| self.parents.get(at));
        contenders.min_by_key(|parent| parent.count)
    }
}

impl<O: Clone> Learning<O> {
    /// Learns from the run of a schedule, in the order of the seeds. Returns true if it reached something
    /// new.
    pub(super) fn learn(&mut self, schedule: &Schedule<O>, report: &Report, traits: &Traits) -> bool {
        let Some(new) = self.reached.add(traits) else { return false };
        let prefix = struck_by(report, new.at);
        let faults = prefix.iter().filter(|has_struck| **has_struck).count();
        // No fault strikes in the core phase.
        let has_rest = schedule.core.as_ref().is_none_or(|core| new.at < core.at.as_nanos());
        if self.keeps && has_rest && (1..=PREFIX_MAX).contains(&faults) {
            let schedule = schedule.clone();
            self.learnt.push(Parent { schedule, prefix, new, count: 1, steps: OnceLock::new() });
        }
        true
    }

    /// Returns the number of different states that runs have reached.
    pub(super) fn states(&self) -> u64 {
        self.reached.count()
    }
}

impl<O: Clone> Parent<O> {
    /// Returns a schedule that begins as this one and continues with the draws of `from`, and the number of
    /// runs that this took. Returns `None` if no world can be built from the beginning alone.
    fn continued<S: Subject<Options = O>>(
        &self,
        subject: &S,
        from: &Draw,
        known: &Faults,
    ) -> Option<(Schedule<O>, u64)> {
        let mut schedule = self.schedule.clone();
        let mut prefix = self.prefix.iter();
        schedule.faults.retain(|_| prefix.next().copied().unwrap_or_default());
        schedule.about = format!("drawn from seed {}, {}", from.seed(), Strategy::Feedback);
        schedule.rekey.retain(|rekey| rekey.at.as_nanos() < self.new.at);
        schedule.rekey.push(Rekey { at: Span::from_nanos(self.new.at), seed: from.seed() });
        let sim = sim::build(subject, &schedule).ok()?;
        let mut runs = 0;
        let steps = self.steps.get_or_init(|| {
            runs = 1;
            self.later_steps(subject)
        });
        let mut site = from.site("feedback");
        let faults = if steps.is_empty() || site.chance(TIMED) {
            self.timed(&sim, known, &mut site)
        } else {
            from.faults(known, sim.scene(), &|| steps.clone())
        };
        for fault in faults {
            if schedule.core.as_ref().is_some_and(|core| !core.allows(&fault)) {
                continue;
            }
            schedule.faults.push(fault);
            // Leaves out a fault that can't be added.
            if sim::build(subject, &schedule).is_err() {
                schedule.faults.pop();
            }
        }
        schedule.limit = subject.limit(&schedule);
        Some((schedule, runs))
    }

    /// Returns the steps of the run from the new feature on.
    fn later_steps<S: Subject<Options = O>>(&self, subject: &S) -> Vec<Step> {
        let mut steps = sim::steps(subject, &self.schedule);
        steps.retain(|step| step.at >= self.new.at);
        steps
    }

    /// Draws a fault at a time after the beginning.
    fn timed(&self, sim: &Sim, known: &Faults, site: &mut Site) -> Vec<Fault> {
        let wait = Span::from_millis(site.below(2 * sim.scene().scale().as_nanos() / 1_000_000));
        let when = Trigger::At(Span::from_nanos(self.new.at).plus(wait));
        let fault = known.draw(sim.scene(), site);
        fault.map(|fault| Fault { when, ..fault }).into_iter().collect()
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
