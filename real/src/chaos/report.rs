//! The report of a long run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use history::{Event, Kind, Name, Nanos, VerdictKind};
use resource::Fencing;
use serde::{Deserialize, Serialize};

use super::Configuration;
use super::fault::FaultKind;
use super::plan::Plan;
use crate::judgement::{Judgement, NotJudged};
use crate::lab::{Machine, Software};
use crate::primitive::Primitive;

/// The number of verdicts of each kind that the report quotes.
const QUOTED: usize = 2;

/// The counts of a run, and its violations.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The command that repeats the run.
    pub command: String,
    /// The machine of the run, with its load at the start.
    pub machine: Machine,
    /// The versions of servers and clients, and the commit.
    pub software: Software,
    /// The options of the run.
    pub configuration: Configuration,
    /// True if the run was interrupted: the report is of the time before.
    pub interrupted: bool,
    /// True if every worker was served after the last fault. Of locks the history also shows who was not;
    /// jobs are claimed, not requested.
    pub served_at_end: bool,
    /// The number of faults of each kind that struck.
    pub faults: BTreeMap<FaultKind, u64>,
    /// The number of verdicts of each kind; kinds without one are left out.
    pub verdicts: BTreeMap<VerdictKind, Count>,
    /// The first verdicts of each kind, as text.
    pub examples: Vec<String>,
    /// Leases granted to workers.
    pub grants: u64,
    /// Ticks and jobs that workers have done, as far as they know.
    pub tasks_done: u64,
    /// Writes accepted by the resource.
    pub writes_accepted: usize,
    /// Writes refused by the resource.
    pub writes_refused: usize,
    /// Claims (fenced reads) refused by the resource.
    pub claims_refused: usize,
    /// The number of acknowledged commits that PostgreSQL does not have in the end; `None` if it keeps none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits_lost: Option<u64>,
    /// The answers of the resource since the last time that a Redis had lost its data and runs again; with
    /// an operator, since its counters are raised.
    pub since_data_lost: Option<Since>,
    /// The longest time in which a worker waited for a lock and no worker was granted one, in milliseconds.
    pub longest_unserved_ms: u64,
    /// The duration of the history, in milliseconds.
    pub lasted_ms: u64,
    /// The number of events in the history.
    pub events: usize,
    /// The length of the history's file.
    pub history_bytes: u64,
    /// The verdicts that could not be judged.
    pub not_judged: Vec<NotJudged>,
}

/// Answers of the resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Since {
    /// Writes accepted.
    pub accepted: u64,
    /// Writes and claims refused.
    pub refused: u64,
}

/// The number of verdicts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The number of all verdicts.
    pub all: u64,
    /// The number of those that a fault explains: known limits, not broken promises.
    pub explained: u64,
}

impl Report {
    pub(super) fn of(
        configuration: &Configuration,
        plan: &Plan,
        history: &[Event],
        history_bytes: u64,
        judgement: Judgement,
        (machine, software): (Machine, Software),
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
            machine,
            software,
            configuration: configuration.clone(),
            interrupted: false,
            served_at_end: true,
            faults,
            verdicts,
            examples,
            grants: summary.grants,
            tasks_done: tasks_done(history),
            writes_accepted: summary.accepted.len(),
            writes_refused: summary.refused.len() + refused_by_postgres(configuration, history),
            claims_refused: summary.refused_reads.len(),
            commits_lost: None,
            since_data_lost: since_data_lost(history),
            longest_unserved_ms: longest_unserved(history) / 1_000_000,
            lasted_ms: history.last().map_or(0, |event| event.at.0) / 1_000_000,
            events: judgement.events,
            history_bytes,
            not_judged: judgement.not_judged,
        }
    }

    /// Returns the number of verdicts that break a promise, all but overlaps and those that a fault explains,
    /// and of commits lost.
    pub fn violations(&self) -> u64 {
        Self::violations_of(&self.verdicts) + self.commits_lost.unwrap_or(0)
    }

    pub(super) fn violations_of(verdicts: &BTreeMap<VerdictKind, Count>) -> u64 {
        let broken = verdicts.iter().filter(|(kind, _)| **kind != VerdictKind::Overlap);
        broken.map(|(_, count)| count.all - count.explained).sum()
    }

    /// Returns whether fencing kept every promise, jobs were served to the end, and writes went on once an
    /// operator had raised the counters; without fencing, whether a promise was broken. An unfenced run
    /// without a violation was too short or too gentle to show anything.
    pub fn is_as_expected(&self) -> bool {
        let went_on = self.since_data_lost.is_none_or(|since| since.accepted > 0);
        let is_served =
            self.served_at_end || self.interrupted || self.configuration.primitive != Primitive::Jobs;
        match self.configuration.fence {
            Fencing::On => self.violations() == 0 && is_served && (went_on || !self.configuration.raise),
            Fencing::Off => self.violations() > 0,
        }
    }
}

fn tasks_done(history: &[Event]) -> u64 {
    let is_done = |event: &&Event| matches!(&event.kind, Kind::TaskEnded { outcome: Some(outcome), .. } if outcome.as_str() == "done");
    history.iter().filter(is_done).count() as u64
}

/// Returns the number of commits that PostgreSQL refused, as far as workers know: it has no events.
fn refused_by_postgres(configuration: &Configuration, history: &[Event]) -> usize {
    let is_refused = |event: &&Event| match &event.kind {
        Kind::TaskEnded { outcome: Some(outcome), .. } => ["stale", "owner"].contains(&outcome.as_str()),
        _ => false,
    };
    if configuration.record.is_default() { 0 } else { history.iter().filter(is_refused).count() }
}

/// Returns the answers of the resource after the last healed loss of data, if there is one.
fn since_data_lost(history: &[Event]) -> Option<Since> {
    let lost = FaultKind::LoseData.name();
    let is_healed =
        |event: &Event| matches!(&event.kind, Kind::FaultHealed { verb, .. } if verb.as_str() == lost);
    let healed = history.iter().rposition(is_healed)?;
    let mut since = Since::default();
    for event in &history[healed..] {
        match event.kind {
            Kind::WriteAccepted { .. } => since.accepted += 1,
            Kind::WriteRejected { .. } | Kind::ReadRejected { .. } => since.refused += 1,
            _ => {}
        }
    }
    Some(since)
}

/// Returns the longest time without a grant while a worker waited, in nanoseconds.
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
            "{}{}, fencing {}, seed {}: {:.1} s, {} faults, {} events in {:.1} MB",
            configuration.system_name(),
            configuration.notes(),
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
        if !self.served_at_end {
            writeln!(f, "  not every worker was served after the last fault")?;
        }
        if self.tasks_done > 0 {
            writeln!(f, "  {} tasks done", self.tasks_done)?;
        }
        if let Some(lost @ 1..) = self.commits_lost {
            writeln!(f, "  {lost} acknowledged commits are not in PostgreSQL")?;
        }
        if let Some(Since { accepted, refused }) = self.since_data_lost {
            let begin = if configuration.raise { "counters were raised" } else { "data was lost" };
            writeln!(f, "  since the last time that {begin}: {accepted} writes accepted, {refused} refused")?;
        }
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
        if self.interrupted {
            writeln!(f, "  interrupted: the report is of the time before")?;
        }
        match self.violations() {
            0 => writeln!(f, "  no violation"),
            1 => writeln!(f, "  1 violation"),
            count => writeln!(f, "  {count} violations"),
        }
    }
}
