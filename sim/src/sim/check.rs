//! Checks that the builder of a run adds to the audit's verdicts.

use std::fmt;

use history::text::Names;
use history::{Event, Nanos, Verdict, VerdictKind};
use serde::{Deserialize, Serialize};

/// The history of a run and what is known of it, for a check to judge.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The history, in order of true time.
    pub events: &'a [Event],
    /// The verdicts of the audit.
    pub verdicts: &'a [Verdict],
    /// The names of the locks, by the hashes in the events.
    pub names: &'a Names,
    /// The end of the run, in true time.
    pub end: Nanos,
}

/// A check of a run. A closure from [`Evidence`] to `Result<(), String>` is a check.
pub trait Check: Send + 'static {
    /// Judges the run.
    ///
    /// # Errors
    ///
    /// The problem with the run, in one sentence.
    fn judge(&self, evidence: &Evidence<'_>) -> Result<(), String>;

    /// Returns the kind of verdict that the check forbids, if that is all it does. The cause of a failure is
    /// then the verdict's.
    fn forbids(&self) -> Option<VerdictKind> {
        None
    }
}

impl<F: Fn(&Evidence<'_>) -> Result<(), String> + Send + 'static> Check for F {
    fn judge(&self, evidence: &Evidence<'_>) -> Result<(), String> {
        self(evidence)
    }
}

/// A check that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The name of the check, or of the probe that must always be true.
    pub check: String,
    /// The problem, in one sentence.
    pub problem: String,
    /// The kind of verdict that the check [forbids](Check::forbids), if it forbids one.
    pub forbids: Option<VerdictKind>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.problem)
    }
}

/// Returns the check that the audit gives no verdict of this kind.
///
/// # Example
///
/// ```
/// use sim::{Sim, VerdictKind};
///
/// let mut sim = Sim::new(7);
/// // Every lock with expiring leases allows overlaps under a long pause; this world forbids them.
/// sim.check("one at a time", sim::no(VerdictKind::Overlap));
/// ```
pub fn no(kind: VerdictKind) -> impl Check {
    No(kind)
}

/// The check that [`no`] returns.
struct No(VerdictKind);

impl Check for No {
    fn judge(&self, evidence: &Evidence<'_>) -> Result<(), String> {
        let kind = self.0;
        let found = evidence.verdicts.iter().find(|verdict| verdict.kind == kind);
        found.map_or(Ok(()), |verdict| Err(format!("{kind} at {}: {}", verdict.at, verdict.detail)))
    }

    fn forbids(&self) -> Option<VerdictKind> {
        Some(self.0)
    }
}
