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
        /// After all faults healed, a waiter was not served, processes waited for each other's locks, or a
        /// key stayed locked past its time to live.
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
        /// An observer of an election was shown a term that is not above all that it had been shown before.
        TermRegressed = "term_regressed",
        /// A task, such as a tick of a schedule, was committed twice, or ran again after its commit was
        /// acknowledged.
        RanTwice = "ran_twice",
        /// A task that had to run was passed over: it was never committed.
        TaskLost = "task_lost",
        /// More acquires waited for a key at once than its queue may hold.
        Crowded = "crowded",
        /// A call of a single-flight computed, although a value that it accepts had been stored before its
        /// lease was granted.
        ComputedTwice = "computed_twice",
        /// A call of a single-flight returned a result that the resource never accepted.
        UnstoredResult = "unstored_result",
        /// A call of a single-flight returned a value that it does not accept, or a failure that was stored
        /// before it began.
        OldResult = "old_result",
    }
}

/// The words of a verdict.
pub(crate) struct Words {
    /// One sentence for a reader who does not know fencing.
    explained: &'static str,
    /// The rule that is broken, as one sentence.
    pub(crate) rule: &'static str,
    about: About,
}

/// The part of a holder's story that leads to a verdict, beside its grant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// None: the grants and their ends tell it.
    Lock,
    /// The last renewal of its belief in the lease.
    Lease,
    /// Its last write or read.
    Resource,
}

impl VerdictKind {
    /// Returns its words, and the part of a story that leads to it.
    pub(crate) const fn words(self) -> Words {
        match self {
            Self::Overlap => Words {
                explained: "Two workers were inside the critical section at the same time; any lock that \
                    expires by itself allows this when its holder is paused for longer than the lease.",
                rule: "At most one holder of a lock is inside its critical section.",
                about: About::Lock,
            },
            Self::StaleWrite => Words {
                explained: "The resource accepted a write from a worker that no longer held the lock, after \
                    a write of a later holder, so older data overwrote newer data.",
                rule: "The resource accepts a write only if its fencing token is above all tokens accepted \
                    before.",
                about: About::Resource,
            },
            Self::LateWrite => Words {
                explained: "The resource accepted a write from a worker that no longer held the lock, \
                    although the next holder had already read the resource, so that holder works with \
                    outdated data.",
                rule: "The resource accepts no write of an older grant once a newer holder has read or \
                    claimed it.",
                about: About::Resource,
            },
            Self::LostUpdate => Words {
                explained: "A worker read the resource, another one changed it, and the first then wrote \
                    without having seen the change, which is lost.",
                rule: "A read-modify-write overwrites only what its writer has read.",
                about: About::Resource,
            },
            Self::TokenRegressed => Words {
                explained: "The lock numbers its grants so that the resource can tell old from new, and here \
                    a later grant got a number that is not higher than an earlier one's.",
                rule: "An acquire that begins after an earlier grant has returned gets a greater fencing \
                    token.",
                about: About::Lock,
            },
            Self::ForeignRelease => Words {
                explained: "A client deleted or prolonged a lock that belonged to another client, which does \
                    not know it and goes on as if it were alone.",
                rule: "A client deletes or extends only a lock that it owns.",
                about: About::Lock,
            },
            Self::Stuck => Words {
                explained: "Everything was working again, and yet a worker that asked for the lock was not \
                    served in time, or the lock stayed taken for longer than it may.",
                rule: "Once all faults have healed, each waiter is served, and no key outlives its TTL.",
                about: About::Lock,
            },
            Self::Unfair => Words {
                explained: "The lock promises to serve workers in the order of their arrival, and served a \
                    later one first.",
                rule: "A first-come-first-served lock serves waiters in the order of their arrival.",
                about: About::Lock,
            },
            Self::TwoValid => Words {
                explained: "Two workers could both be sure, each by its own clock, that they held the lock: \
                    the lock itself failed, and not only a late worker.",
                rule: "No two leases on one key are valid at once by their holders' own clocks.",
                about: About::Lease,
            },
            Self::Unheld => Words {
                explained: "A worker could be sure, by its own clock, that the lock was its own, while the \
                    lock servers did not hold it for that worker any more.",
                rule: "While a lease is valid by its holder's clock, the servers (or a majority) hold its \
                    key.",
                about: About::Lease,
            },
            Self::Leaked => Words {
                explained: "A worker had released the lock or had stopped waiting for it, and the lock \
                    stayed taken in its name although no fault prevented the cleanup.",
                rule: "Once an acquisition has ended, its key is not stored any more.",
                about: About::Lock,
            },
            Self::Idle => Words {
                explained: "The lock was free and a worker was waiting for it, yet no worker got it for \
                    longer than the longest retry delay.",
                rule: "A free lock is granted to a waiter within the longest retry delay.",
                about: About::Lock,
            },
            Self::AfterRelease => Words {
                explained: "A worker had given the lock back by itself, and then went on as if it still had \
                    it; no failure of others explains that.",
                rule: "Once a client releases its lock, it neither writes nor works on.",
                about: About::Lock,
            },
            Self::TermRegressed => Words {
                explained: "Somebody who watches which process leads was shown a leader of an earlier term \
                    after a newer one, and would follow a leader that had been replaced.",
                rule: "An observer of an election sees each term at most once, in growing order.",
                about: About::Lock,
            },
            Self::RanTwice => Words {
                explained: "A task that must run once, such as a tick of a schedule or a job of a queue, \
                    took effect twice, or ran again although its worker knew that it was done.",
                rule: "A task is committed once, and does not run again once its commit is acknowledged.",
                about: About::Resource,
            },
            Self::Crowded => Words {
                explained: "The lock promises that no more than a given number of workers wait for it, and \
                    refuses the others at once; here one more was let into the queue.",
                rule: "No more acquires wait for a key at once than its queue may hold.",
                about: About::Lock,
            },
            Self::TaskLost => Words {
                explained: "A task that had to run was passed over: nobody did it, and nobody will.",
                rule: "A task that is due is committed, unless the policy skips it or gives it up.",
                about: About::Resource,
            },
            Self::ComputedTwice => Words {
                explained: "A worker waited for the lock to compute a result, and computed it although \
                    another one had stored it in the meantime: it did not look again.",
                rule: "A call computes only if no value that it accepts was stored before its lease was \
                    granted.",
                about: About::Resource,
            },
            Self::UnstoredResult => Words {
                explained: "A worker returned a result that was never stored, so that nobody else will ever \
                    get the same one.",
                rule: "A call returns only a result that the resource has accepted.",
                about: About::Resource,
            },
            Self::OldResult => Words {
                explained: "A worker asked for a newer result than the one it knew to be out of date, and \
                    got an old one, or the failure of an earlier attempt.",
                rule: "A call returns a value above the token that it names, or a failure that was stored \
                    after it began.",
                about: About::Resource,
            },
        }
    }

    /// Returns one sentence for a reader who does not know fencing.
    pub const fn explain(self) -> &'static str {
        self.words().explained
    }

    /// Returns the part of a holder's story that leads to the verdict.
    pub(super) const fn about(self) -> About {
        self.words().about
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

impl Verdict {
    fn new(kind: VerdictKind, at: Nanos, key: &Name, processes: &[&Name], detail: String) -> Self {
        let (key, processes) = (key.clone(), processes.iter().copied().cloned().collect());
        Self { kind, key, processes, at, event: None, because: Vec::new(), detail }
    }
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
    /// Adds a verdict: the event that is judged breaks the rule.
    pub(super) fn convict(
        &mut self,
        kind: VerdictKind,
        at: Nanos,
        key: &Name,
        processes: &[&Name],
        detail: String,
    ) {
        let event = Some(self.now);
        self.found.push(Verdict { event, ..Verdict::new(kind, at, key, processes, detail) });
    }

    /// Adds a verdict: the rule is broken because something has not happened in time.
    pub(super) fn convict_absence(
        &mut self,
        kind: VerdictKind,
        at: Nanos,
        key: &Name,
        processes: &[&Name],
        detail: String,
    ) {
        self.found.push(Verdict::new(kind, at, key, processes, detail));
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
