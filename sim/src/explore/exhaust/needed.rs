//! The number of faults that a mistake needs to show.

use std::fmt;

use super::breaks::Break;
use super::{ExhaustError, Progress, Scope, exhaust};
use crate::{Schedule, Subject};

/// The least number of faults that break a promise of a workload.
#[derive(Clone, Debug)]
pub enum Needed<O> {
    /// This number, as in this placement.
    Faults(usize, Box<Break<O>>),
    /// More than this number.
    MoreThan(usize),
}

impl<O> fmt::Display for Needed<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faults(count, _) => write!(f, "{count}"),
            Self::MoreThan(count) => write!(f, "more than {count}"),
        }
    }
}

/// Finds the least number of faults, at most `scope.faults`, that break a promise of the subject in the
/// workload of `base`. Tries none, then one, and so on.
///
/// # Errors
///
/// As [`exhaust`].
pub fn faults_needed<S: Subject>(
    subject: &S,
    base: &Schedule<S::Options>,
    scope: &Scope,
) -> Result<Needed<S::Options>, ExhaustError> {
    faults_needed_watched(subject, base, scope, |_| true)
}

/// Finds the number as [`faults_needed`] does, and calls `go_on` as [`exhaust`] does. If `go_on` returns
/// false or `scope.stop` ends the search, returns what is known by then.
///
/// # Errors
///
/// As [`exhaust`].
pub fn faults_needed_watched<S: Subject>(
    subject: &S,
    base: &Schedule<S::Options>,
    scope: &Scope,
    go_on: impl Fn(&Progress) -> bool + Sync,
) -> Result<Needed<S::Options>, ExhaustError> {
    for faults in 0..=scope.faults {
        let scope = Scope { faults, progress: None, ends_at_first: true, ..scope.clone() };
        let mut found = exhaust(subject, base, &scope, &go_on)?;
        if !found.breaks.is_empty() {
            return Ok(Needed::Faults(faults, Box::new(found.breaks.swap_remove(0))));
        }
        if found.remaining > 0 {
            return Ok(Needed::MoreThan(faults.saturating_sub(1)));
        }
    }
    Ok(Needed::MoreThan(scope.faults))
}
