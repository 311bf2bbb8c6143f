//! The outcome of one run, from its history.

use std::path::Path;
use std::time::Duration;

use history::{Event, Kind, Nanos, Verdict, VerdictKind, WriteBy};
use serde::{Deserialize, Serialize};

use super::{LabError, histories, story};
use crate::judgement::Judgement;
use crate::recording;

/// The outcome of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Writes that the resource accepted, in order: worker and token.
    pub(crate) accepted: Vec<WriteBy>,
    /// Writes that it refused.
    pub(crate) refused: Vec<WriteBy>,
    /// The kinds of the audit's verdicts.
    pub(crate) verdicts: Vec<VerdictKind>,
    /// The same verdicts with names and times.
    pub(crate) details: Vec<String>,
    /// The events of all processes in one order, as text.
    pub(crate) story: Vec<String>,
}

impl Outcome {
    /// Reads and judges the history files of one run.
    pub(crate) fn of(files: &[impl AsRef<Path>]) -> Result<(Self, Vec<Event>), LabError> {
        let history = recording::read(files)?;
        histories::keep(&history, files)?;
        Ok((Self::of_events(&history.events), history.events))
    }

    /// Judges the events of one run.
    pub(crate) fn of_events(events: &[Event]) -> Self {
        let Judgement { verdicts, summary, .. } = Judgement::of(events, false, None);
        Self {
            accepted: summary.accepted,
            refused: summary.refused,
            verdicts: verdicts.iter().map(|verdict: &Verdict| verdict.kind).collect(),
            details: verdicts.iter().map(ToString::to_string).collect(),
            story: story::lines(events),
        }
    }

    /// Drops the texts and keeps the writes and verdicts: of many runs of one kind, only the first is read as
    /// text.
    pub(crate) fn without_text(self) -> Self {
        Self { details: Vec::new(), story: Vec::new(), ..self }
    }

    /// Returns the number of verdicts of this kind.
    pub(crate) fn count(&self, kind: VerdictKind) -> usize {
        self.verdicts.iter().filter(|found| **found == kind).count()
    }

    /// Returns whether there is a verdict of this kind.
    pub(crate) fn has(&self, kind: VerdictKind) -> bool {
        self.verdicts.contains(&kind)
    }

    /// Returns whether there is no verdict but overlaps, which any lease allows.
    pub(crate) fn is_safe(&self) -> bool {
        self.verdicts.iter().all(|kind| *kind == VerdictKind::Overlap)
    }
}

/// Lists the writers in order: `b a`.
pub(crate) fn writers(writes: &[WriteBy]) -> String {
    let names: Vec<_> = writes.iter().map(|write| write.worker.as_str()).collect();
    names.join(" ")
}

/// Formats writes for a table: `b:2 a:1`, or `none`.
pub(crate) fn cell(writes: &[WriteBy]) -> String {
    let names: Vec<_> = writes.iter().map(ToString::to_string).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

/// Returns the time of the first event of `process` that satisfies `is`.
pub(crate) fn first(events: &[Event], process: &str, is: impl Fn(&Kind) -> bool) -> Option<Nanos> {
    let event = events.iter().find(|event| event.process.as_str() == process && is(&event.kind));
    event.map(|event| event.at)
}

/// Returns the time between two events.
pub(crate) fn between(begin: Nanos, end: Nanos) -> Duration {
    Duration::from_nanos(end.0.saturating_sub(begin.0))
}
