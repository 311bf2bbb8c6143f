//! The number of faults that a mistake needs to show.

use std::fmt;

use super::breaks::Break;
use super::{ExhaustError, Scope, exhaust};
use crate::{Schedule, Subject};

/// The least number of faults that breaks a promise of a workload.
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

/// Finds the least number of faults, `scope.faults` at most, that breaks a promise of the subject in the
/// workload of `base`: none, then one, and so on.
///
/// # Errors
///
/// As [`exhaust`].
pub fn faults_needed<S: Subject>(
    subject: &S,
    base: &Schedule<S::Options>,
    scope: &Scope,
) -> Result<Needed<S::Options>, ExhaustError> {
    for faults in 0..=scope.faults {
        let scope = Scope { faults, progress: None, ends_at_first: true, ..scope.clone() };
        let mut breaks = exhaust(subject, base, &scope, |_| true)?.breaks;
        if !breaks.is_empty() {
            return Ok(Needed::Faults(faults, Box::new(breaks.swap_remove(0))));
        }
    }
    Ok(Needed::MoreThan(scope.faults))
}
