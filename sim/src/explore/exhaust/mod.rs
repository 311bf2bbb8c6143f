//! Exhaustive search: every placement of at most K faults in a small workload.
//!
//! The search is a tree. It runs the base schedule, places one fault in *that* run, runs again, places the
//! next fault in the run that this gives, at the same point or later, and so on. A placement is a fault and a
//! point: the passing of a named point by a process, such as the second `sends to redis-1` of `a`. Faults are
//! of the [`Form`]s that a [`Scope`] lists. A placement that breaks a promise is not extended.
//!
//! # What is left out
//!
//! *Lineage.* A run is a sequence of [steps](crate::sim::Step). Each step records which processes had a turn
//! since the step before, and which read their wall clocks. A fault touches some steps: a pause touches those
//! before which its process had a turn, a cut those that send on its link, a step of a clock those before
//! which the clock was read. Up to the first step that it touches, the run with the fault equals the run
//! without it. So of all points between two steps that a fault touches, the last one stands for the others. A
//! fault that touches no later step changes nothing by itself. It may change something together with a fault
//! placed after it; the tree then has the two in the other order, the later one first.
//!
//! The claim states two limits of the argument. A fault that is moved to a later point also ends later, by
//! the time between the two points: its duration differs. And no fault is placed between two points. Members
//! of a cluster exchange messages that are no steps, so a fault of one touches the steps of all. Faults that
//! reset connections or restart a process cause new steps, so they are also placed after the last step.
//!
//! Nothing else is left out. Processes that differ only in their names are not symmetric: each draws its own
//! random numbers, so a fault of one may break a promise that the same fault of the other does not. And runs
//! are never merged, although many reach the same state: the memories of clients can't be compared.

mod breaks;
mod candidate;
mod claim;
mod demanding;
mod needed;
mod progress;
mod reach;
mod search;
mod tree;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;

use xxhash_rust::xxh3::xxh3_64;

pub use breaks::Break;
pub use claim::Exhausted;
#[doc(hidden)]
pub use demanding::Demanding;
#[doc(hidden)]
pub use needed::{Needed, faults_needed, faults_needed_watched};
#[doc(hidden)]
pub use progress::ProgressError;

use crate::faults::Form;
use crate::pool;
use crate::sim::{self, RunError, Schedule, Subject};
use crate::world::lock;
use crate::{Draw, Invalid, Sim};
use progress::{Done, load, save};
use search::{Part, Search};
use tree::Placements;

/// Number of runs after which the progress is saved.
const SAVED_EVERY: u64 = 2_000;

/// The faults that an exhaustive search places, and its options.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The most faults of a placement.
    pub faults: usize,
    /// The forms of faults. Default: those of the [subject's faults](Subject::faults), with durations by the
    /// [scale](Sim::scale) of the world.
    pub forms: Option<Vec<Form>>,
    /// The processes that faults may affect; a fault of a link affects both of its ends. Default: all.
    pub befall: Option<BTreeSet<String>>,
    /// Number of threads. Default 1.
    pub threads: usize,
    /// The file that keeps the progress. If it exists, the search continues from it.
    pub progress: Option<PathBuf>,
    /// True if placements are left out when others stand for them. Default true.
    pub is_pruned: bool,
    /// True if the search ends with the first violation. Default false.
    pub ends_at_first: bool,
    /// Called before each run: true ends the search. Its result then covers the placements that were run.
    /// Default: always false.
    pub stop: fn() -> bool,
}

impl Scope {
    /// Creates a search for placements of at most `faults` faults.
    pub fn of(faults: usize) -> Self {
        Self {
            faults,
            forms: None,
            befall: None,
            threads: 1,
            progress: None,
            is_pruned: true,
            ends_at_first: false,
            stop: || false,
        }
    }
}

/// The progress of a search.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Number of placements that were run.
    pub runs: u64,
    /// Number of first faults below which all placements were run.
    pub done: usize,
    /// Number of first faults.
    pub all: usize,
    /// Number of causes of violations.
    pub broken: usize,
}

/// The reason why a search has no result.
#[derive(Debug, thiserror::Error)]
pub enum ExhaustError {
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The progress file can't be used.
    #[error(transparent)]
    Progress(#[from] ProgressError),
}

/// Draws the options of a subject from `seed`, and returns their schedule without faults.
///
/// # Errors
///
/// [`Invalid`] if no world can be built of them.
pub fn base<S: Subject>(subject: &S, seed: u64) -> Result<Schedule<S::Options>, Invalid> {
    let options = subject.draw(&mut Draw::new(seed));
    let mut sim = Sim::new(seed);
    subject.build(&options, &mut sim)?;
    Ok(Schedule::of(&sim, options))
}

/// Runs every placement of faults in the workload of `base`. The faults of `base` strike in every run. Calls
/// `go_on` after all placements with the same first fault, and stops when it returns false.
///
/// ```
/// use sim::explore::exhaust::{Scope, base};
/// use sim::{Process, Sim};
/// use std::time::Duration;
///
/// let subject = |sim: &mut Sim| {
///     sim.check("one at a time", sim::no(history::VerdictKind::Overlap));
///     for (name, starts) in [("a", 0), ("b", 200)] {
///         sim.process(name, move |process: Process| async move {
///             process.sleep(Duration::from_millis(starts)).await;
///             let section = process.section("key");
///             process.point("inside");
///             process.sleep(Duration::from_millis(10)).await;
///             drop(section);
///         });
///     }
/// };
/// let found = sim::explore::exhaust(&subject, &base(&subject, 0)?, &Scope::of(1), |_| true)?;
/// // A pause of `a` inside its section is enough.
/// assert_eq!(found.breaks[0].faults, 1);
/// println!("{}", found.claim());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`ExhaustError`] if a run fails, or the progress file can't be used.
pub fn exhaust<S: Subject>(
    subject: &S,
    base: &Schedule<S::Options>,
    scope: &Scope,
    go_on: impl Fn(&Progress) -> bool + Sync,
) -> Result<Exhausted<S::Options>, ExhaustError> {
    let mut search = Search::new(subject, base, scope.is_pruned, scope.ends_at_first);
    search.stop = scope.stop;
    let forms = scope.forms.clone().map_or_else(|| default_forms(subject, base), Ok)?;
    let report = search.survey(&forms, scope.befall.as_ref())?;
    let mut whole = Part { runs: 1, ..Part::default() };
    let is_broken = search.judge(&[], &report, &mut whole);
    let is_over = is_broken || scope.faults == 0;
    let first = if is_over { Placements::default() } else { search.first_placements(&report.steps) };
    let identity = identity(subject, base, scope, &first, report.hash);
    let done = match &scope.progress {
        Some(file) => load(subject, file, &identity)?,
        None => Done::new(),
    };
    let resumed = done.values().map(|part| part.runs).sum();
    let tasks: Vec<_> =
        first.placed.iter().enumerate().filter(|(number, _)| !done.contains_key(number)).collect();
    let parts = Mutex::new(Parts { done, cut: Done::new(), unsaved: 0 });
    let keeper = Keeper::<S> { parts, scope, identity, all: first.placed.len() };
    pool::run(scope.threads, tasks.into_iter(), |(number, placement)| -> Result<_, ExhaustError> {
        let mut part = Part::default();
        search.descend(placement, &[], scope.faults - 1, &mut part)?;
        if part.is_cut {
            keeper.keep_cut(number, part);
            return Ok(ControlFlow::Break(()));
        }
        let is_end = scope.ends_at_first && !part.breaks.is_empty();
        let progress = keeper.keep(number, part)?;
        Ok(if go_on(&progress) && !is_end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    let Parts { done, cut, .. } = keeper.finish()?;
    let remaining = first.placed.len() - done.len();
    // In the order of their first faults, so that of two violations with one cause the first one is kept.
    let parts: Done<_> = done.into_iter().chain(cut).collect();
    parts.values().for_each(|part| whole.add(part));
    let points = search.points(&report.steps);
    Ok(Exhausted {
        faults: scope.faults,
        runs: whole.runs,
        resumed,
        remaining,
        alike: first.alike,
        refused: whole.refused,
        breaks: whole.breaks.smallest(),
        base: base.clone(),
        hash: report.hash,
        arm: subject.arm(),
        targets: claim::targets(&forms, search.candidates()),
        points: claim::points(points),
        befall: scope.befall.clone(),
    })
}

/// The parts of a search so far; those that are done are saved from time to time.
struct Keeper<'a, S: Subject> {
    parts: Mutex<Parts<S::Options>>,
    scope: &'a Scope,
    identity: String,
    all: usize,
}

/// The parts of a search, by the number of their first fault.
struct Parts<O> {
    done: Done<O>,
    /// The parts that were cut short: their findings count, but they are not done.
    cut: Done<O>,
    /// Number of runs since the parts were saved.
    unsaved: u64,
}

impl<S: Subject> Keeper<'_, S> {
    fn keep(&self, number: usize, part: Part<S::Options>) -> Result<Progress, ProgressError> {
        let mut parts = lock(&self.parts);
        let Parts { done, cut, unsaved } = &mut *parts;
        *unsaved += part.runs;
        done.insert(number, part);
        if *unsaved >= SAVED_EVERY
            && let Some(file) = &self.scope.progress
        {
            save::<S>(file, &self.identity, done, cut)?;
            *unsaved = 0;
        }
        let runs = done.values().map(|part| part.runs).sum();
        let broken = done.values().map(|part| part.breaks.iter().count()).sum();
        Ok(Progress { runs, done: done.len(), all: self.all, broken })
    }

    fn keep_cut(&self, number: usize, part: Part<S::Options>) {
        lock(&self.parts).cut.insert(number, part);
    }

    fn finish(self) -> Result<Parts<S::Options>, ProgressError> {
        let parts = self.parts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(file) = &self.scope.progress {
            save::<S>(file, &self.identity, &parts.done, &parts.cut)?;
        }
        Ok(parts)
    }
}

fn default_forms<S: Subject>(subject: &S, base: &Schedule<S::Options>) -> Result<Vec<Form>, RunError> {
    Ok(subject.faults().forms(sim::build(subject, base)?.scene().scale()))
}

/// Returns the hash of everything that the result of a search depends on, including the first faults, by
/// whose numbers the progress is kept.
fn identity<S: Subject>(
    subject: &S,
    base: &Schedule<S::Options>,
    scope: &Scope,
    first: &Placements,
    hash: u64,
) -> String {
    let Scope { faults, forms, befall, is_pruned, .. } = scope;
    let arm = subject.arm();
    let version = env!("CARGO_PKG_VERSION");
    let scope = format!("{faults} {forms:?} {befall:?} {is_pruned} {:?}", first.placed);
    let text = format!("{version} {arm} {scope} {hash} {}", base.to_toml());
    format!("{:016x}", xxh3_64(text.as_bytes()))
}
