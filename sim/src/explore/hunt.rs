//! Hunts: how many random schedules a search needs until it finds a first violation.

use std::ops::ControlFlow;
use std::slice;
use std::sync::{Mutex, PoisonError};

use super::portfolio::Portfolio;
use super::search::{Found, explore};
use super::tally::Tally;
use super::violation::Violation;
use crate::pool;
use crate::sim::{RunError, Subject};
use crate::world::lock;

/// The outcome of a hunt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hunt<O> {
    /// Number of schedules that were run, the last one included.
    pub schedules: u64,
    /// The violation that ended the hunt; `None` if no schedule showed one.
    pub violation: Option<Violation<O>>,
}

/// Runs at most `cap` random schedules of `subject`, from the seed `first` on, until one shows a violation.
///
/// # Errors
///
/// [`RunError`] if a world can't be built or run.
pub fn hunt<S: Subject>(
    subject: &S,
    first: u64,
    cap: u64,
    portfolio: &Portfolio,
) -> Result<Hunt<S::Options>, RunError> {
    hunt_until(subject, first, cap, portfolio, || false)
}

/// Hunts as [`hunt`] does; ends without a violation once `stop` returns true, which it asks after each
/// schedule.
fn hunt_until<S: Subject>(
    subject: &S,
    first: u64,
    cap: u64,
    portfolio: &Portfolio,
    stop: impl Fn() -> bool + Sync,
) -> Result<Hunt<S::Options>, RunError> {
    let seeds = first..first.saturating_add(cap);
    let go_on = |tally: &Tally| tally.violations == 0 && !stop();
    let Found { tally, mut violations } = explore(slice::from_ref(subject), seeds, portfolio, 1, go_on)?;
    Ok(Hunt { schedules: tally.schedules, violation: violations.pop() })
}

/// Hunts `count` times with different seeds, on `threads` threads. Returns the hunts in the order of their
/// seeds.
///
/// # Errors
///
/// [`RunError`] if a world can't be built or run.
pub fn hunts<S: Subject>(
    subject: &S,
    count: u64,
    cap: u64,
    portfolio: &Portfolio,
    threads: usize,
) -> Result<Vec<Hunt<S::Options>>, RunError> {
    hunts_until(subject, count, cap, portfolio, threads, || false)
}

/// Hunts as [`hunts`] does, until `stop` returns true, which it asks after each schedule. Returns the hunts
/// that had ended by then.
///
/// # Errors
///
/// As [`hunts`].
pub fn hunts_until<S: Subject>(
    subject: &S,
    count: u64,
    cap: u64,
    portfolio: &Portfolio,
    threads: usize,
    stop: impl Fn() -> bool + Sync,
) -> Result<Vec<Hunt<S::Options>>, RunError> {
    let ended = Mutex::new(Vec::new());
    pool::run(threads, 0..count, |number| -> Result<_, RunError> {
        let hunt = hunt_until(subject, number.saturating_mul(cap), cap, portfolio, &stop)?;
        // A hunt that was cut short says nothing.
        if hunt.violation.is_none() && hunt.schedules < cap && stop() {
            return Ok(ControlFlow::Break(()));
        }
        lock(&ended).push((number, hunt));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.sort_by_key(|(number, _)| *number);
    Ok(ended.into_iter().map(|(_, hunt)| hunt).collect())
}
