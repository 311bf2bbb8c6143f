//! The next step after work that did not go through: the fact that an answer proves, and a policy that turns
//! it into a step. Pure.
//!
//! | answer | proves | next step |
//! |---|---|---|
//! | refused as [stale](Proof::Stale) | the token is not the newest; a later holder may have written, or not | begin anew with a new lease |
//! | refused, and a later write is known | the work is [superseded](Proof::Superseded) | stop, or compensate |
//! | refused as a [conflict](Proof::Conflict) | the value is not the one that was read | read and begin anew |
//! | no answer | nothing | send the very same write again |
//! | the lock is taken, or unreachable | nothing was begun | wait |
//!
//! Source: the seat booking of "Redis Locks and Fencing Tokens": a client that has paid and is then refused
//! needs its money back. The steps and the policy are ours.

use std::time::Duration;

use dlock::{AcquireError, LostError, TryAcquireError};

use crate::Refusal;

/// The fact that a refusal proves. In each case the refused request is not applied, and never will be: the
/// highest token does not go back, nor does a version. An earlier attempt of the same write whose answer was
/// lost may have been applied, and another write has replaced it since.
///
/// # Example
///
/// ```
/// use fence::{Proof, Refusal};
///
/// let refusal = Refusal::Stale { seen: "34".parse()?, got: "33".parse()? };
/// // The holder of 34 may only have read so far.
/// assert_eq!(refusal.proof(), Proof::Stale);
/// // The work began at version 7, and the resource has version 8: somebody has written.
/// assert_eq!(refusal.proof_by_version(7, 8), Proof::Superseded);
/// assert_eq!(refusal.proof_by_version(7, 7), Proof::Stale);
/// # Ok::<(), dlock::TokenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proof {
    /// The token is below the highest seen, or is another owner's: the lease is gone. A later holder has read
    /// or written; nothing shows that it has written.
    Stale,
    /// The write of a later holder stands. A write of the earlier one would undo it.
    Superseded,
    /// The resource has another version than the one that the writer has read. Its writer may have any rank:
    /// versions do not order holders.
    Conflict,
    /// The key is written under a lock, and the write came without a token.
    Unguarded,
    /// The token can't come from the lock: see [`MaxJump`](crate::MaxJump).
    Impossible,
}

impl Refusal {
    /// Returns the fact that the refusal proves by itself: never [`Proof::Superseded`], since a fenced read
    /// raises the highest token, too.
    pub const fn proof(self) -> Proof {
        match self {
            Self::Stale { .. } | Self::ForeignOwner { .. } => Proof::Stale,
            Self::Conflict { .. } => Proof::Conflict,
            Self::Fenced { .. } => Proof::Unguarded,
            Self::Jump { .. } => Proof::Impossible,
        }
    }

    /// Returns the fact that the refusal proves together with two versions: `known` is that of the last own
    /// write, or of the own read if there was none; `current` is that of a read after the refusal. For a
    /// mutex: beside other permits of a semaphore, a version may have grown by a write that is not later.
    pub const fn proof_by_version(self, known: u64, current: u64) -> Proof {
        match self.proof() {
            Proof::Stale if current > known => Proof::Superseded,
            proof => proof,
        }
    }
}

/// The step after an answer.
///
/// # Example
///
/// ```
/// use fence::{NextStep, Policy, Proof};
///
/// // A payment was made outside of the resource.
/// let paid = Policy { has_outside_effects: true, may_begin_anew: true };
/// assert_eq!(paid.after(Proof::Stale), NextStep::RetryWithNewLease);
/// assert_eq!(paid.after(Proof::Superseded), NextStep::Compensate);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextStep {
    /// The work is done, now or by an earlier attempt. Answer as the first time.
    Done,
    /// The work is void, and leaves no trace: stop. Over HTTP: 409.
    Stop,
    /// The work is not done, and nothing shows that a later holder has done it: acquire the lock again, read,
    /// and begin anew with the new token. Effects outside that have a key of their own, such as a payment by
    /// the booking's number, stay; they are not repeated.
    RetryWithNewLease,
    /// The work is void, and has left effects outside: record durably that they are to be undone, then undo
    /// them by a key that makes a second time harmless.
    Compensate,
    /// Nothing was begun, or the request never arrived: wait. Over HTTP: 503 with `Retry-After`.
    Busy {
        /// The time to wait, if it is known.
        retry_after: Option<Duration>,
    },
    /// Nothing is proved: the write may be applied, now or later. Send the very same one again, with the same
    /// token, number, owner and body, until there is an answer. Neither begin anew nor compensate before.
    RepeatSameWrite,
    /// No retry helps: the request or the configuration must be changed. The error says what.
    Repair,
}

/// The properties of some work on which the next step depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// True if the work has had effects that a refused write does not undo: a payment, an e-mail, a file.
    pub has_outside_effects: bool,
    /// True if the work may begin anew, with a new lease.
    pub may_begin_anew: bool,
}

impl Policy {
    /// Returns the step after a refusal that proves `proof`.
    pub const fn after(self, proof: Proof) -> NextStep {
        match proof {
            Proof::Stale | Proof::Conflict | Proof::Unguarded if self.may_begin_anew => {
                NextStep::RetryWithNewLease
            }
            Proof::Impossible => NextStep::Repair,
            _ if self.has_outside_effects => NextStep::Compensate,
            _ => NextStep::Stop,
        }
    }

    /// Returns the step after a lease was lost before the write was sent. A loss proves nothing about the
    /// resource: a later holder may have written, or nobody. Not for a write that was sent and is unanswered:
    /// that is [`NextStep::RepeatSameWrite`].
    pub const fn after_loss(self, lost: LostError) -> NextStep {
        match lost {
            // The program released it while it worked: it is about to end, or has a mistake.
            LostError::Released if self.has_outside_effects => NextStep::Compensate,
            LostError::Released => NextStep::Stop,
            _ => self.after(Proof::Stale),
        }
    }
}

impl From<&TryAcquireError> for NextStep {
    /// Returns the step after no lease: nothing was begun, so nothing is to be undone.
    fn from(error: &TryAcquireError) -> Self {
        match error {
            TryAcquireError::Taken { retry_after } => Self::Busy { retry_after: *retry_after },
            TryAcquireError::Closed => Self::Stop,
            TryAcquireError::Ttl(_) | TryAcquireError::NoReaders => Self::Repair,
            TryAcquireError::Backend(error) if !error.is_passing() => Self::Repair,
            _ => Self::Busy { retry_after: None },
        }
    }
}

impl From<&AcquireError> for NextStep {
    /// Returns the step after no lease: nothing was begun, so nothing is to be undone.
    fn from(error: &AcquireError) -> Self {
        match error {
            AcquireError::Closed => Self::Stop,
            AcquireError::Ttl(_) | AcquireError::NoReaders | AcquireError::Refused(_) => Self::Repair,
            other => Self::Busy { retry_after: other.retry_after() },
        }
    }
}
