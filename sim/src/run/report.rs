//! What a run came to, and how that compares with what its schedule demands.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use resource::audit::{Event, Kind, Name, Summary, Verdict};

use crate::schedule::{Arm, Outcome, Verdict as Expected, Write};
use crate::trace::text::{self, Names, holder};

/// What one run came to.
#[derive(Debug)]
pub struct Report {
    /// The seed of its randomness.
    pub seed: u64,
    /// Whether the resource checked fencing tokens.
    pub arm: Arm,
    /// What the audit found, in order of time.
    pub verdicts: Vec<Verdict>,
    /// The hash of the trace: equal hashes mean equal traces, byte for byte.
    pub hash: u64,
    /// What happened.
    pub events: Vec<Event>,
    /// The names of the run's resources.
    pub names: Names,
    /// How much time passed in the simulated world.
    pub simulated: Duration,
    /// How many commands the lock servers executed, those within scripts included.
    pub commands: u64,
    /// How many of the schedule's faults struck.
    pub struck: usize,
}

/// A way in which a run is not what its schedule demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What was compared: `verdicts`, `accepted`, `refused`, `refused_reads`, `repeated`, `grants` or `updates`.
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

impl Report {
    /// The trace as text, a line an event.
    pub fn trace(&self) -> String {
        text::trace(&self.events, &self.names)
    }

    /// Who wrote, and how many leases were granted and ended.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.events)
    }

    /// The kinds of the verdicts.
    pub fn kinds(&self) -> BTreeSet<Expected> {
        self.verdicts.iter().map(|verdict| verdict.kind).collect()
    }

    /// Whether the resource took a write that it should not have taken: what fencing must prevent.
    pub fn is_violated(&self) -> bool {
        let wrong = [Expected::StaleWrite, Expected::LateWrite, Expected::LostUpdate];
        self.kinds().iter().any(|kind| wrong.contains(kind))
    }

    /// The retries that the resource recognised.
    pub fn repeated(&self) -> Vec<Write> {
        let repeated = |event: &Event| match &event.kind {
            Kind::WriteRepeated { owner, token, .. } => {
                Some(Write { worker: Name::from(holder(owner.as_ref())), token: *token })
            }
            _ => None,
        };
        self.events.iter().filter_map(repeated).collect()
    }

    /// How the run differs from what is demanded of it; empty if it does not.
    pub fn mismatches(&self, demanded: &Outcome) -> Vec<Mismatch> {
        let summary = self.summary();
        let mut mismatches = Vec::new();
        compare(&mut mismatches, "verdicts", &list(&demanded.verdicts), &list(self.kinds()));
        let mut writes = |what, demanded: &Option<Vec<Write>>, found: String| {
            if let Some(demanded) = demanded {
                compare(&mut mismatches, what, &list(demanded), &found);
            }
        };
        writes("accepted", &demanded.accepted, list::<&Write>(&summary.accepted));
        writes("refused", &demanded.refused, list::<&Write>(&summary.refused));
        writes("refused_reads", &demanded.refused_reads, list::<&Write>(&summary.refused_reads));
        writes("repeated", &demanded.repeated, list(self.repeated()));
        if let Some(grants) = demanded.grants {
            compare(&mut mismatches, "grants", &grants.to_string(), &summary.grants.to_string());
        }
        if let Some(updates) = demanded.updates {
            compare(&mut mismatches, "updates", &updates.to_string(), &summary.updates.made.to_string());
        }
        mismatches
    }
}

fn compare(mismatches: &mut Vec<Mismatch>, what: &'static str, expected: &str, found: &str) {
    if expected != found {
        mismatches.push(Mismatch { what, expected: expected.to_owned(), found: found.to_owned() });
    }
}

/// The items with commas between them, or `none`.
pub(crate) fn list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}
