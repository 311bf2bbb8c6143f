//! Counts of a history: accepted and refused writes, and leases granted and ended.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::holders::Holders;
use crate::events::Event;
use crate::vocabulary::{Kind, Name};

/// The counts of one history.
///
/// # Example
///
/// ```
/// use history::{Event, Kind, Name, Nanos, Summary};
///
/// let (key, owner) = (Name::from("6b6e"), Some(Name::from("a:7f3c")));
/// let kind = Kind::WriteRejected { key, owner, token: 1, seq: None, seen: 2, outcome: None };
/// let history = [Event { at: Nanos(0), process: Name::from("resource"), kind }];
/// let summary = Summary::of(&history);
/// assert_eq!(summary.refused, ["a:1".parse()?]);
/// assert_eq!(summary.grants, 0);
/// # Ok::<(), history::WriteByError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The writes that the resource stored, in their order. A retry that got its first answer is not among
    /// them.
    pub accepted: Vec<WriteBy>,
    /// The writes that the resource refused, in their order.
    pub refused: Vec<WriteBy>,
    /// The fenced reads that the resource refused, in their order.
    pub refused_reads: Vec<WriteBy>,
    /// Read-modify-writes by conditional writes.
    #[serde(default)]
    pub updates: Updates,
    /// Leases that clients got (`lease_acquired`).
    pub grants: u64,
    /// Leases that clients released and the server deleted (`lease_released` with the outcome `done`).
    pub releases: u64,
    /// Leases that were extended (`lease_renewed`), each time counted.
    pub renewals: u64,
    /// Keys that lock servers dropped as expired; zero in live runs, which have no server events.
    pub expiries: u64,
}

/// The counts of updates, which are made by conditional writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Updates {
    /// Updates that were made (`conditional_accepted`).
    pub made: u64,
    /// Conditional writes that workers sent; repetitions of one whose answer was lost are not counted.
    pub attempts: u64,
    /// Conditional writes that the resource refused because its version was another one.
    pub conflicts: u64,
    /// Conditional writes that it refused because the key had seen a fencing token.
    pub fenced: u64,
    /// Updates that a worker gave up (`update_ended` with another outcome than `done`).
    pub given_up: u64,
}

/// A worker and the token that it sent, as written in expectation files: `b:2`.
///
/// # Example
///
/// ```
/// use history::WriteBy;
///
/// let write: WriteBy = "b:2".parse()?;
/// assert_eq!((write.worker.as_str(), write.token), ("b", 2));
/// assert!("b".parse::<WriteBy>().is_err());
/// # Ok::<(), history::WriteByError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteBy {
    /// The process that acquired as the owner that the write named.
    pub worker: Name,
    /// The write's fencing token.
    pub token: u64,
}

/// A text that is not `worker:token`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no write: give the worker and its token, as in `b:2`")]
pub struct WriteByError {
    text: String,
}

impl Summary {
    /// Counts `history`, in one pass.
    pub fn of(history: &[Event]) -> Self {
        let mut summary = Self::default();
        let mut holders = Holders::default();
        for event in history {
            holders.observe(event);
            summary.add(event, &holders);
        }
        summary
    }

    fn add<'h>(&mut self, event: &'h Event, holders: &Holders<'h>) {
        let write_by = |key, owner: &'h Option<Name>, token| WriteBy {
            worker: holders.process(key, owner.as_ref(), token),
            token,
        };
        match &event.kind {
            Kind::WriteAccepted { key, owner, token, .. } => self.accepted.push(write_by(key, owner, *token)),
            Kind::WriteRejected { key, owner, token, .. } => self.refused.push(write_by(key, owner, *token)),
            Kind::ReadRejected { key, owner, token, .. } => {
                self.refused_reads.push(write_by(key, owner, *token))
            }
            Kind::LeaseAcquired { .. } => self.grants += 1,
            Kind::LeaseReleased { outcome: Some(outcome), .. } if outcome.as_str() == "done" => {
                self.releases += 1
            }
            Kind::LeaseRenewed { .. } => self.renewals += 1,
            Kind::KeyExpired { .. } => self.expiries += 1,
            kind => self.updates.add(kind),
        }
    }
}

impl Updates {
    fn add(&mut self, kind: &Kind) {
        let is = |outcome: &Option<Name>, word| outcome.as_ref().map(Name::as_str) == Some(word);
        match kind {
            Kind::ConditionalSent { .. } => self.attempts += 1,
            Kind::ConditionalAccepted { .. } => self.made += 1,
            Kind::ConditionalRejected { outcome, .. } if is(outcome, "fenced") => self.fenced += 1,
            Kind::ConditionalRejected { .. } => self.conflicts += 1,
            Kind::UpdateEnded { outcome, .. } if !is(outcome, "done") => self.given_up += 1,
            _ => {}
        }
    }

    /// Returns the number of conditional writes sent for each accepted one; `None` if none was accepted.
    pub fn attempts_per_update(&self) -> Option<f64> {
        (self.made > 0).then(|| self.attempts as f64 / self.made as f64)
    }
}

impl fmt::Display for WriteBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.worker, self.token)
    }
}

impl FromStr for WriteBy {
    type Err = WriteByError;

    fn from_str(text: &str) -> Result<Self, WriteByError> {
        let parts = text.rsplit_once(':').filter(|(worker, _)| !worker.is_empty());
        let parsed = parts.and_then(|(worker, token)| {
            let token: dlock::FencingToken = token.parse().ok()?;
            Some(Self { worker: Name::from(worker), token: token.as_u64() })
        });
        parsed.ok_or_else(|| WriteByError { text: text.to_owned() })
    }
}

crate::as_text!(WriteBy, "a worker and its token, such as \"b:2\"");
