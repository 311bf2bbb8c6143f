//! The expected outcome of a schedule: for each arm, the verdicts and the results of the writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use history::{VerdictKind, WriteBy};
use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::field_path::{FieldPath, Invalid};

/// The expected outcome of each arm of a subject, by the arm's name. An arm without one is not run. If no arm
/// has one, nothing is expected and all arms run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expect(BTreeMap<String, Outcome>);

/// The expected outcome of one arm. A list that is left out is not compared; an empty list requires an empty
/// one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The kinds of all verdicts, each once.
    pub verdicts: BTreeSet<VerdictKind>,
    /// The checks that do not hold, by name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub findings: BTreeSet<String>,
    /// The writes that the resource accepted, in order; a repeated write is not accepted again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Vec<WriteBy>>,
    /// The writes that it refused, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Vec<WriteBy>>,
    /// The fenced reads that it refused, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_reads: Option<Vec<WriteBy>>,
    /// The retries that it recognised as writes it had accepted before, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Vec<WriteBy>>,
    /// The number of leases that workers got. Grants whose reply never reached the worker don't count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<u32>,
    /// The number of updates by workers that work without the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<u32>,
}

/// A difference between a run and the outcome that its schedule expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The field of [`Outcome`] that was compared, or `faults`.
    pub what: &'static str,
    /// The outcome that the schedule expects.
    pub expected: String,
    /// The outcome of the run.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.what, self.expected, self.found)
    }
}

impl Outcome {
    /// Returns the outcome of a run, as a schedule expects it.
    pub fn of(report: &Report) -> Self {
        let summary = report.summary();
        Self {
            verdicts: report.kinds(),
            findings: checks(report),
            accepted: Some(summary.accepted),
            refused: Some(summary.refused),
            ..Self::default()
        }
    }

    /// Compares the run with this outcome; returns the differences.
    pub fn mismatches(&self, report: &Report) -> Vec<Mismatch> {
        let summary = report.summary();
        let mut mismatches = Vec::new();
        let mut compare = |what, expected: String, found: String| {
            if expected != found {
                mismatches.push(Mismatch { what, expected, found });
            }
        };
        compare("verdicts", list(&self.verdicts), list(report.kinds()));
        compare("findings", list(&self.findings), list(checks(report)));
        let writes = [
            ("accepted", &self.accepted, list(&summary.accepted)),
            ("refused", &self.refused, list(&summary.refused)),
            ("refused_reads", &self.refused_reads, list(&summary.refused_reads)),
            ("repeated", &self.repeated, list(report.repeated())),
        ];
        for (what, demanded, found) in writes {
            if let Some(demanded) = demanded {
                compare(what, list(demanded), found);
            }
        }
        let counts =
            [("grants", self.grants, summary.grants), ("updates", self.updates, summary.updates.made)];
        for (what, demanded, found) in counts {
            if let Some(demanded) = demanded {
                compare(what, demanded.to_string(), found.to_string());
            }
        }
        mismatches
    }
}

/// Returns the items with commas between them, or `none`.
pub(crate) fn list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

impl Expect {
    /// Returns true if nothing is expected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the expected outcome of the arm, if the schedule has one.
    pub fn of(&self, arm: &str) -> Option<&Outcome> {
        self.0.get(arm)
    }

    /// Sets the expected outcome of the arm.
    pub fn demand(&mut self, arm: &str, outcome: Outcome) {
        self.0.insert(arm.to_owned(), outcome);
    }

    /// Returns the arms with their expected outcomes, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Outcome)> {
        self.0.iter().map(|(arm, outcome)| (arm.as_str(), outcome))
    }

    /// Returns true if the arm is to be run.
    pub fn runs(&self, arm: &str) -> bool {
        self.is_empty() || self.of(arm).is_some()
    }

    /// Checks that every arm is one of the subject's, which are `known`.
    pub(super) fn check(&self, known: &BTreeSet<&str>) -> Result<(), Invalid> {
        match self.0.keys().find(|arm| !known.contains(arm.as_str())) {
            None => Ok(()),
            Some(arm) => {
                let known: Vec<&str> = known.iter().copied().collect();
                let problem = format!("unknown arm `{arm}`: known are {}", known.join(", "));
                Err(FieldPath::top("expect").key(arm.clone()).says(problem))
            }
        }
    }
}

/// Returns the checks that the run breaks.
fn checks(report: &Report) -> BTreeSet<String> {
    report.findings.iter().map(|finding| finding.check.clone()).collect()
}
