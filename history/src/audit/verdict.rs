//! Verdicts: their kinds, and the list that the judges add to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::events::Nanos;
use crate::vocabulary::Name;

crate::names! {
    /// The violated property.
    ///
    /// # Example
    ///
    /// ```
    /// use history::VerdictKind;
    ///
    /// assert_eq!("stale_write".parse(), Ok(VerdictKind::StaleWrite));
    /// for kind in VerdictKind::ALL {
    ///     println!("{kind}: {}", kind.explain());
    /// }
    /// ```
    pub enum VerdictKind as "verdict" {
        /// Two holders were inside their critical sections at once.
        Overlap = "overlap",
        /// The resource accepted a write whose token is not above all that it had accepted.
        StaleWrite = "stale_write",
        /// The resource accepted a write of an older grant after a newer holder had read or claimed it.
        LateWrite = "late_write",
        /// A read-modify-write was overwritten by one that had not seen it.
        LostUpdate = "lost_update",
        /// An acquire that began after an earlier grant had returned got a token that is not greater.
        TokenRegressed = "token_regressed",
        /// A client deleted or extended a lock that it did not own.
        ForeignRelease = "foreign_release",
        /// After all faults healed, a waiter was not served, or a key stayed locked past its time to live.
        Stuck = "stuck",
        /// A FIFO lock served a later arrival first.
        Unfair = "unfair",
        /// Two leases on one key were valid at once by their holders' own clocks.
        TwoValid = "two_valid",
        /// A lease was valid by its holder's own clock while no server, or no majority of them, held its key.
        Unheld = "unheld",
        /// An acquisition had ended, no fault was in force, and its key was still stored.
        Leaked = "leaked",
        /// The lock was free for longer than the longest retry delay, a waiter was left waiting, and no fault
        /// was in force.
        Idle = "idle",
        /// A client wrote, or was inside its critical section with another one, after it had begun to
        /// release.
        AfterRelease = "after_release",
    }
}

impl VerdictKind {
    /// Returns true if the rule is broken because something has not happened in time.
    const fn is_of_absence(self) -> bool {
        matches!(self, Self::Stuck | Self::Leaked | Self::Idle)
    }

    /// Returns one sentence for a reader who does not know fencing.
    pub const fn explain(self) -> &'static str {
        match self {
            Self::Overlap => {
                "Two workers were inside the critical section at the same time; any lock that expires by \
                 itself allows this when its holder is paused for longer than the lease."
            }
            Self::StaleWrite => {
                "The resource accepted a write from a worker that no longer held the lock, after a write of \
                 a later holder, so older data overwrote newer data."
            }
            Self::LateWrite => {
                "The resource accepted a write from a worker that no longer held the lock, although the next \
                 holder had already read the resource, so that holder works with outdated data."
            }
            Self::LostUpdate => {
                "A worker read the resource, another one changed it, and the first then wrote without having \
                 seen the change, which is lost."
            }
            Self::TokenRegressed => {
                "The lock numbers its grants so that the resource can tell old from new, and here a later \
                 grant got a number that is not higher than an earlier one's."
            }
            Self::ForeignRelease => {
                "A client deleted or prolonged a lock that belonged to another client, which does not know \
                 it and goes on as if it were alone."
            }
            Self::Stuck => {
                "Everything was working again, and yet a worker that asked for the lock was not served in \
                 time, or the lock stayed taken for longer than it may."
            }
            Self::Unfair => {
                "The lock promises to serve workers in the order of their arrival, and served a later one \
                 first."
            }
            Self::TwoValid => {
                "Two workers could both be sure, each by its own clock, that they held the lock: the lock \
                 itself failed, and not only a late worker."
            }
            Self::Unheld => {
                "A worker could be sure, by its own clock, that the lock was its own, while the lock servers \
                 did not hold it for that worker any more."
            }
            Self::Leaked => {
                "A worker had released the lock or had stopped waiting for it, and the lock stayed taken in \
                 its name although no fault prevented the cleanup."
            }
            Self::Idle => {
                "The lock was free and a worker was waiting for it, yet no worker got it for longer than the \
                 longest retry delay."
            }
            Self::AfterRelease => {
                "A worker had given the lock back by itself, and then went on as if it still had it; no \
                 failure of others explains that."
            }
        }
    }
}

/// One violation, found in a history.
///
/// # Example
///
/// ```
/// use history::{Event, Kind, Name, Nanos, Rules, audit};
///
/// let write = |at, token| {
///     let (key, owner) = (Name::from("6b6e"), Some(Name::from("a:7f3c")));
///     let kind = Kind::WriteAccepted { key, owner, token, seq: None, version: 1, body: None };
///     Event { at: Nanos(at), process: Name::from("resource"), kind }
/// };
/// let history = [write(1, 34), write(2, 33)];
/// let verdict = &audit(&history, &Rules::default())[0];
/// // The second event broke the rule.
/// assert_eq!((verdict.event, verdict.at), (Some(1), Nanos(2)));
/// assert!(verdict.detail.starts_with("the resource accepted the write of a (token 33)"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The violated property.
    pub kind: VerdictKind,
    /// The lock and resource that it concerns, hashed ([`dlock::id_hash`]).
    pub key: Name,
    /// The processes that it concerns. If one harmed another, the harmful one comes first.
    pub processes: Vec<Name>,
    /// The true time.
    pub at: Nanos,
    /// The number of the event in the history that broke the rule; `None` if something never happened.
    #[serde(default)]
    pub event: Option<usize>,
    /// The numbers of the events that led there, in their order: the grants of the processes, the ends of
    /// their leases, and the faults that took part.
    #[serde(default)]
    pub because: Vec<usize>,
    /// One sentence with the names, tokens and times of the case.
    pub detail: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.kind, self.at, self.detail)
    }
}

/// The verdicts found so far.
#[derive(Default)]
pub(super) struct Verdicts {
    found: Vec<Verdict>,
    /// The number of the event that is judged.
    now: usize,
}

impl Verdicts {
    pub(super) fn convict(
        &mut self,
        kind: VerdictKind,
        at: Nanos,
        key: &Name,
        processes: &[&Name],
        detail: String,
    ) {
        let (key, processes) = (key.clone(), processes.iter().copied().cloned().collect());
        let event = (!kind.is_of_absence()).then_some(self.now);
        self.found.push(Verdict { kind, key, processes, at, event, because: Vec::new(), detail });
    }

    /// Begins to judge the event with this number.
    pub(super) const fn judge(&mut self, event: usize) {
        self.now = event;
    }

    /// Returns the verdicts in the order of their times; of one time, in the order of [`VerdictKind`].
    pub(super) fn sorted(mut self) -> Vec<Verdict> {
        self.found.sort_by_key(|verdict| (verdict.at, verdict.kind));
        self.found
    }
}
