//! What the runs of a schedule must give: for each arm, the verdicts, and what became of the writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use resource::audit::{VerdictKind, WriteBy};
use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::place::{Invalid, Place};

/// What each arm of a subject must give, by the arm's name. An arm that is left out is not run, unless all
/// are: then nothing is expected, and all run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expect(BTreeMap<String, Outcome>);

/// What one arm must give. A list that is left out is not compared; an empty one says that there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// All verdicts, each named once however often it was given.
    pub verdicts: BTreeSet<VerdictKind>,
    /// The checks that do not hold, by name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub findings: BTreeSet<String>,
    /// The writes that the resource accepted, in order; a repeated one is not accepted again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Vec<WriteBy>>,
    /// The writes that it refused, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Vec<WriteBy>>,
    /// The fenced reads that it refused, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_reads: Option<Vec<WriteBy>>,
    /// The retries that it recognised as writes accepted before, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Vec<WriteBy>>,
    /// How many leases workers got; a grant whose reply never reached its worker is not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<u32>,
    /// How many updates were made by workers that do without the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<u32>,
}

/// A way in which a run is not what its schedule demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The field of [`Outcome`] that was compared, or `faults`.
    pub what: &'static str,
    /// What the schedule demands.
    pub expected: String,
    /// What the run gave.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.what, self.expected, self.found)
    }
}

impl Outcome {
    /// What a run gave, as the demand of a schedule.
    pub fn of(report: &Report) -> Self {
        let summary = report.summary();
        Self {
            verdicts: report.kinds(),
            findings: report.findings.iter().map(|finding| finding.check.clone()).collect(),
            accepted: Some(summary.accepted),
            refused: Some(summary.refused),
            ..Self::default()
        }
    }

    /// How the run differs from what is demanded of it; empty if it does not.
    pub fn mismatches(&self, report: &Report) -> Vec<Mismatch> {
        let summary = report.summary();
        let mut mismatches = Vec::new();
        let mut compare = |what, expected: String, found: String| {
            if expected != found {
                mismatches.push(Mismatch { what, expected, found });
            }
        };
        compare("verdicts", list(&self.verdicts), list(report.kinds()));
        compare("findings", list(&self.findings), list(report.findings.iter().map(|finding| &finding.check)));
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

/// The items with commas between them, or `none`.
pub(crate) fn list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

impl Expect {
    /// Whether nothing is expected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the arm must give, if the schedule says.
    pub fn of(&self, arm: &str) -> Option<&Outcome> {
        self.0.get(arm)
    }

    /// Demands `outcome` of the arm.
    pub fn demand(&mut self, arm: &str, outcome: Outcome) {
        self.0.insert(arm.to_owned(), outcome);
    }

    /// The arms with what they must give, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Outcome)> {
        self.0.iter().map(|(arm, outcome)| (arm.as_str(), outcome))
    }

    /// Whether the arm is to be run.
    pub fn runs(&self, arm: &str) -> bool {
        self.is_empty() || self.of(arm).is_some()
    }

    /// Checks that the subject has every arm.
    pub(super) fn check(&self, known: &BTreeSet<&str>) -> Result<(), Invalid> {
        match self.0.keys().find(|arm| !known.contains(arm.as_str())) {
            None => Ok(()),
            Some(arm) => {
                let known: Vec<&str> = known.iter().copied().collect();
                let problem = format!("unknown arm `{arm}`: known are {}", known.join(", "));
                Err(Place::top("expect").key(arm.clone()).says(problem))
            }
        }
    }
}
