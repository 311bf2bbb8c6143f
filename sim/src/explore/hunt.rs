//! Hunts: the number of random schedules that a search needs until it finds a known mistake.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::slice;
use std::sync::{Mutex, PoisonError};

use super::cause::{Broken, Causes};
use super::portfolio::Portfolio;
use super::search::{Watch, explore_watched};
use super::tally::Tally;
use super::violation::Violation;
use crate::pool;
use crate::sim::{self, RunError, Subject};
use crate::world::lock;

/// The outcome of a hunt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hunt<O> {
    /// Number of schedules that were run, the last one included.
    pub schedules: u64,
    /// Number of runs that these took: each schedule's own, second runs for comparison, and the runs without
    /// faults by which some strategies learn the points of a schedule.
    pub runs: u64,
    /// The broken promise that ended the hunt, and the violation that shows it; `None` if no schedule did.
    pub found: Option<(Broken, Violation<O>)>,
    /// The number of violations that broke none of the hunted promises, by the first promise that each
    /// broke.
    pub others: BTreeMap<Broken, u64>,
}

/// The violations that a hunt has met so far.
struct Trail<'a, O, F> {
    signs: &'a [Broken],
    stop: &'a F,
    met: Mutex<Met<O>>,
}

struct Met<O> {
    found: Option<(Broken, Violation<O>)>,
    others: BTreeMap<Broken, u64>,
}

impl<O: Clone + Send, F: Fn() -> bool + Sync> Watch<O> for Trail<'_, O, F> {
    fn violation(&self, violation: &Violation<O>) {
        let mut met = lock(&self.met);
        if met.found.is_some() {
            return;
        }
        match self.signs.iter().find(|sign| violation.shows(sign)) {
            Some(sign) => met.found = Some((sign.clone(), violation.clone())),
            None => *met.others.entry(violation.cause.broken.clone()).or_default() += 1,
        }
    }

    fn goes_on(&self, _: &Tally) -> bool {
        lock(&self.met).found.is_none() && !(self.stop)()
    }
}

/// Runs at most `cap` random schedules of `subject`, from the seed `first` on, until one breaks a promise in
/// `signs`. Violations of other promises don't end the hunt.
///
/// # Errors
///
/// [`RunError`] if a world can't be built or run.
pub fn hunt<S: Subject>(
    subject: &S,
    signs: &[Broken],
    first: u64,
    cap: u64,
    portfolio: &Portfolio,
) -> Result<Hunt<S::Options>, RunError> {
    hunt_until(subject, signs, first, cap, portfolio, &|| false)
}

/// Hunts as [`hunt`] does, but calls `stop` after each schedule and ends once it returns true.
fn hunt_until<S: Subject>(
    subject: &S,
    signs: &[Broken],
    first: u64,
    cap: u64,
    portfolio: &Portfolio,
    stop: &(impl Fn() -> bool + Sync),
) -> Result<Hunt<S::Options>, RunError> {
    let seeds = first..first.saturating_add(cap);
    let trail = Trail { signs, stop, met: Mutex::new(Met { found: None, others: BTreeMap::new() }) };
    let tally = explore_watched(slice::from_ref(subject), seeds, portfolio, 1, &trail)?.tally;
    let Met { found, others } = trail.met.into_inner().unwrap_or_else(PoisonError::into_inner);
    let found = found.map(|(sign, violation)| (sign.clone(), because_of(&sign, violation, subject)));
    Ok(Hunt { schedules: tally.schedules, runs: tally.runs + tally.learning_runs, found, others })
}

/// Returns the violation with this broken promise as its cause: the run may break another promise first.
fn because_of<S: Subject>(
    sign: &Broken,
    violation: Violation<S::Options>,
    subject: &S,
) -> Violation<S::Options> {
    if violation.cause.broken == *sign {
        return violation;
    }
    let run = sim::run(subject, &violation.schedule);
    let causes = Causes::of(subject, &violation.schedule, &run).violations;
    match causes.into_iter().find(|cause| cause.broken == *sign) {
        Some(cause) => Violation { cause, ..violation },
        None => violation,
    }
}

/// Hunts once for each of `numbers`, each with its own seeds, on `threads` threads. Returns the hunts in the
/// order of their numbers. Calls `stop` after each schedule; if it returns true, the result is the hunts
/// before the first that had not ended.
///
/// # Errors
///
/// [`RunError`] if a world can't be built or run.
pub fn hunts<S: Subject>(
    subject: &S,
    signs: &[Broken],
    numbers: Range<u64>,
    cap: u64,
    portfolio: &Portfolio,
    threads: usize,
    stop: impl Fn() -> bool + Sync,
) -> Result<Vec<Hunt<S::Options>>, RunError> {
    let (first, ended) = (numbers.start, Mutex::new(BTreeMap::new()));
    pool::run(threads, numbers, |number| -> Result<_, RunError> {
        let hunt = hunt_until(subject, signs, number.saturating_mul(cap), cap, portfolio, &stop)?;
        // A hunt that was cut short says nothing.
        if hunt.found.is_none() && hunt.schedules < cap {
            return Ok(ControlFlow::Break(()));
        }
        lock(&ended).insert(number, hunt);
        Ok(ControlFlow::Continue(()))
    })?;
    let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((first..).map_while(|number| ended.remove(&number)).collect())
}
