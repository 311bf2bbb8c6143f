//! What a run is judged by beyond the audit's verdicts: the checks of whoever built it.

use std::fmt;

use resource::audit::{Event, Nanos, Verdict, VerdictKind};

use crate::trace::text::Names;

/// What a check is shown of a run.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What happened, in order of true time.
    pub events: &'a [Event],
    /// What the audit found.
    pub verdicts: &'a [Verdict],
    /// The names of the locks, under the hashes that events know them by.
    pub names: &'a Names,
    /// When the run ended, in true time.
    pub end: Nanos,
}

/// A judge of runs. A closure from [`Evidence`] to `Result<(), String>` is one.
pub trait Check: Send + 'static {
    /// Judges the run.
    ///
    /// # Errors
    ///
    /// What is wrong with the run, in one sentence.
    fn judge(&self, evidence: &Evidence<'_>) -> Result<(), String>;
}

impl<F: Fn(&Evidence<'_>) -> Result<(), String> + Send + 'static> Check for F {
    fn judge(&self, evidence: &Evidence<'_>) -> Result<(), String> {
        self(evidence)
    }
}

/// A check that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check, or of the probe that must always be true.
    pub check: String,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.problem)
    }
}

/// The check that the audit gives no verdict of this kind.
pub fn no(kind: VerdictKind) -> impl Check {
    move |evidence: &Evidence<'_>| {
        let found = evidence.verdicts.iter().find(|verdict| verdict.kind == kind);
        found.map_or(Ok(()), |verdict| Err(format!("{kind} at {}: {}", verdict.at, verdict.detail)))
    }
}
