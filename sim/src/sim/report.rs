//! What a run came to.

use std::collections::BTreeSet;
use std::time::Duration;

use resource::audit::{Event, Kind, Name, Summary, Verdict, VerdictKind, WriteBy};

use super::check::Finding;
use crate::probes::Probes;
use crate::trace::text::{self, Names, holder};

/// What one run came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The seed of its randomness.
    pub seed: u64,
    /// What the audit found, in order of time.
    pub verdicts: Vec<Verdict>,
    /// The checks that did not hold, in the order in which they were added.
    pub findings: Vec<Finding>,
    /// The hash of the history: equal hashes mean equal histories, byte for byte.
    pub hash: u64,
    /// What happened, in order of true time.
    pub events: Vec<Event>,
    /// The names of the run's locks and resources.
    pub names: Names,
    /// How much time passed in the simulated world.
    pub simulated: Duration,
    /// How many requests the simulated servers carried out, those within scripts included.
    pub commands: u64,
    /// For each fault, in the order in which they were added, whether it struck.
    pub struck: Vec<bool>,
    /// What the probes have shown. No part of the history, nor of its hash.
    pub probes: Probes,
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
    pub fn kinds(&self) -> BTreeSet<VerdictKind> {
        self.verdicts.iter().map(|verdict| verdict.kind).collect()
    }

    /// How many faults struck.
    pub fn faults_struck(&self) -> usize {
        self.struck.iter().filter(|struck| **struck).count()
    }

    /// The retries that the resource recognised.
    pub fn repeated(&self) -> Vec<WriteBy> {
        let repeated = |event: &Event| match &event.kind {
            Kind::WriteRepeated { owner, token, .. } => {
                Some(WriteBy { worker: Name::from(holder(owner.as_ref())), token: *token })
            }
            _ => None,
        };
        self.events.iter().filter_map(repeated).collect()
    }
}
