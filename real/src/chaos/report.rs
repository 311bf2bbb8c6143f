//! What a long run came to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use resource::Fencing;
use resource::audit::{Event, Kind, Name, Nanos, VerdictKind};
use serde::Serialize;

use super::Configuration;
use super::fault::FaultKind;
use super::plan::Plan;
use crate::judgement::{Judgement, NotJudged};

/// How many verdicts of each kind are quoted.
const QUOTED: usize = 2;

/// The counts of a run, and what was violated.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The command that repeats the run.
    pub command: String,
    /// What the run was made of.
    pub configuration: Configuration,
    /// How many faults of each kind struck.
    pub faults: BTreeMap<FaultKind, u64>,
    /// How many verdicts of each kind there were; those without one are left out.
    pub verdicts: BTreeMap<VerdictKind, Count>,
    /// The first of each kind, in words.
    pub examples: Vec<String>,
    /// Leases that workers got.
    pub grants: u64,
    /// Writes that the resource took.
    pub writes_accepted: usize,
    /// Writes that it refused.
    pub writes_refused: usize,
    /// Claims (fenced reads) that it refused.
    pub claims_refused: usize,
    /// The longest time in which somebody waited for a lock and nobody got it, in milliseconds.
    pub longest_unserved_ms: u64,
    /// How long the history lasts, in milliseconds.
    pub lasted_ms: u64,
    /// How many events it has.
    pub events: usize,
    /// How long its file is.
    pub history_bytes: u64,
    /// What could not be judged.
    pub not_judged: Vec<NotJudged>,
}

/// How many verdicts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// All.
    pub all: u64,
    /// Those that a fault explains: a known limit, and no broken promise.
    pub explained: u64,
}

impl Report {
    pub(super) fn of(
        configuration: &Configuration,
        plan: &Plan,
        history: &[Event],
        history_bytes: u64,
        judgement: Judgement,
    ) -> Self {
        let mut faults = BTreeMap::new();
        for planned in &plan.faults {
            *faults.entry(planned.fault.kind()).or_default() += 1;
        }
        let (mut verdicts, mut examples) = (BTreeMap::<_, Count>::new(), Vec::new());
        for (verdict, explanation) in judgement.explained() {
            let count = verdicts.entry(verdict.kind).or_default();
            count.all += 1;
            count.explained += u64::from(explanation.is_some());
            if count.all <= QUOTED as u64 {
                let why = explanation.map(|why| format!(" ({why})")).unwrap_or_default();
                examples.push(format!("{verdict}{why}"));
            }
        }
        let summary = judgement.summary;
        Self {
            command: configuration.command(),
            configuration: configuration.clone(),
            faults,
            verdicts,
            examples,
            grants: summary.grants,
            writes_accepted: summary.accepted.len(),
            writes_refused: summary.refused.len(),
            claims_refused: summary.refused_reads.len(),
            longest_unserved_ms: longest_unserved(history) / 1_000_000,
            lasted_ms: history.last().map_or(0, |event| event.at.0) / 1_000_000,
            events: judgement.events,
            history_bytes,
            not_judged: judgement.not_judged,
        }
    }

    /// How many verdicts break a promise: all but overlaps, and what a fault explains.
    pub fn violations(&self) -> u64 {
        let broken = self.verdicts.iter().filter(|(kind, _)| **kind != VerdictKind::Overlap);
        broken.map(|(_, count)| count.all - count.explained).sum()
    }

    /// With fencing no promise is broken; without it one is, or the run was too short or too gentle to show anything.
    pub fn is_as_expected(&self) -> bool {
        match self.configuration.fence {
            Fencing::On => self.violations() == 0,
            Fencing::Off => self.violations() > 0,
        }
    }
}

/// In nanoseconds.
fn longest_unserved(history: &[Event]) -> u64 {
    let mut waiting: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
    let mut since: BTreeMap<&Name, Nanos> = BTreeMap::new();
    let mut longest = 0;
    for event in history {
        match &event.kind {
            Kind::LeaseRequested { key, .. } => {
                let waiting = waiting.entry(key).or_default();
                if waiting.is_empty() {
                    since.insert(key, event.at);
                }
                waiting.insert(&event.process);
            }
            Kind::LeaseAcquired { key, .. } => {
                let begun = since.insert(key, event.at).unwrap_or(event.at);
                longest = longest.max(event.at.0.saturating_sub(begun.0));
                waiting.entry(key).or_default().remove(&event.process);
            }
            Kind::ProcessCrashed { .. } => waiting.values_mut().for_each(|waiting| {
                waiting.remove(&event.process);
            }),
            _ => {}
        }
    }
    let end = history.last().map_or(Nanos(0), |event| event.at);
    let unserved = waiting.iter().filter(|(_, waiting)| !waiting.is_empty());
    let open = unserved.filter_map(|(key, _)| since.get(key)).map(|since| end.0.saturating_sub(since.0));
    open.fold(longest, u64::max)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { configuration, .. } = self;
        let seconds = |ms| Duration::from_millis(ms).as_secs_f64();
        writeln!(
            f,
            "{}, fencing {}, seed {}: {:.1} s, {} faults, {} events in {:.1} MB",
            configuration.system.as_str(),
            configuration.fence.as_str(),
            configuration.seed,
            seconds(self.lasted_ms),
            self.faults.values().sum::<u64>(),
            self.events,
            self.history_bytes as f64 / 1e6,
        )?;
        let faults: Vec<_> =
            self.faults.iter().map(|(kind, count)| format!("{} {count}", kind.name())).collect();
        writeln!(f, "  faults: {}", faults.join(", "))?;
        writeln!(
            f,
            "  {} grants, {} writes accepted, {} refused, {} claims refused, longest time unserved {:.1} s",
            self.grants,
            self.writes_accepted,
            self.writes_refused,
            self.claims_refused,
            seconds(self.longest_unserved_ms),
        )?;
        for (kind, Count { all, explained }) in &self.verdicts {
            let note = match (kind, explained) {
                (VerdictKind::Overlap, _) => " (any lease allows it; the fence makes it harmless)".to_owned(),
                (_, 0) => String::new(),
                _ => format!(", {explained} of them explained by a fault"),
            };
            writeln!(f, "  {kind}: {all}{note}")?;
        }
        for example in &self.examples {
            writeln!(f, "    {example}")?;
        }
        for NotJudged { kind, why } in &self.not_judged {
            writeln!(f, "  not judged: {kind} ({why})")?;
        }
        match self.violations() {
            0 => writeln!(f, "  no violation"),
            1 => writeln!(f, "  1 violation"),
            count => writeln!(f, "  {count} violations"),
        }
    }
}
