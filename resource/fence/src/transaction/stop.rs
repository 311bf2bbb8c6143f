//! The reasons why the caller's statements must not run.

use std::error::Error;

use crate::rule::{Receipt, Refusal};
use crate::{NextStep, Policy, Proof, TooLarge};

/// The reason why the transaction must not go on. Drop the transaction in each case: that rolls it back.
///
/// It is an error and not a value, so that `?` stops the caller before its own statements.
#[derive(Debug, thiserror::Error)]
pub enum Stop<E> {
    /// The token is stale, or another owner's. Stop, undo what was done outside of the database, or answer
    /// 409. Another attempt with the same token is refused, too: acquire the lock again first.
    ///
    /// [`Refusal::Jump`] is a token above the limit of [`Entry::max_jump`](super::Entry::max_jump): it can't
    /// come from the lock.
    #[error("{}", refused(*.0))]
    Refused(Refusal),
    /// This very write was committed before, with all statements of its transaction: a retry after a lost
    /// answer. Nothing is left to do; answer as the first time.
    #[error("this write was committed before as version {}; nothing is left to do", .0.version)]
    Repeated(Receipt),
    /// A number is beyond a bigint of PostgreSQL. Columns of MySQL hold every token.
    #[error(transparent)]
    TooLarge(TooLarge),
    /// The transaction met another one (a serialization failure, a deadlock, on MySQL also a timeout of a
    /// lock or a snapshot older than the fence). Run all of it again, with the same token.
    #[error("another transaction was in the way; run this one again from its beginning: {0}")]
    Retry(#[source] E),
    /// The client has failed, or the server. If the connection was lost before the commit was sent, nothing
    /// stands; during the commit, all or nothing: run the transaction again, with the same [`super::Entry`],
    /// and [`Stop::Repeated`] says that it stands.
    #[error("the transaction failed: {0}")]
    Failed(#[source] E),
    /// The table holds something that no check writes.
    #[error("the table fence_position is damaged: {0}")]
    Corrupt(&'static str),
}

impl<E> Stop<E> {
    /// Returns the fact that a refusal proves: here also [`Proof::Superseded`], since the rows of
    /// `fence_position` are raised by writes alone. Don't use it for the key of a schedule, whose row a claim
    /// of its ticks raises, too: a refusal there proves [`Proof::Stale`] alone. `None` if it is no refusal.
    pub const fn proof(&self) -> Option<Proof> {
        match self {
            Self::Refused(Refusal::Stale { seen, got }) if got.as_u64() < seen.as_u64() => {
                Some(Proof::Superseded)
            }
            Self::Refused(Refusal::ForeignOwner { .. }) => Some(Proof::Superseded),
            // At the highest token itself it may be the own later write.
            Self::Refused(refusal) => Some(refusal.proof()),
            _ => None,
        }
    }

    /// Returns the step after it, for work with the properties of `policy`.
    ///
    /// # Example
    ///
    /// ```
    /// use fence::{NextStep, Policy, Refusal, Stop};
    ///
    /// let paid = Policy { has_outside_effects: true, may_begin_anew: true };
    /// let refusal = Refusal::Stale { seen: "34".parse()?, got: "33".parse()? };
    /// assert_eq!(Stop::<()>::Refused(refusal).next_step(paid), NextStep::Compensate);
    /// // The commit may have been done: neither refund nor begin anew.
    /// assert_eq!(Stop::Failed(()).next_step(paid), NextStep::RepeatSameWrite);
    /// # Ok::<(), dlock::TokenError>(())
    /// ```
    pub const fn next_step(&self, policy: Policy) -> NextStep {
        match (self, self.proof()) {
            (_, Some(proof)) => policy.after(proof),
            (Self::Repeated(_), None) => NextStep::Done,
            (Self::Retry(_) | Self::Failed(_), None) => NextStep::RepeatSameWrite,
            _ => NextStep::Repair,
        }
    }
}

impl<E: Retryable> From<E> for Stop<E> {
    /// Returns [`Stop::Retry`] or [`Stop::Failed`], also for the caller's own statements and the commit.
    fn from(error: E) -> Self {
        if error.is_retryable() { Self::Retry(error) } else { Self::Failed(error) }
    }
}

/// An error of a client, which may be cured by running the transaction again. The caller's own statements
/// and the commit have such errors, too.
pub trait Retryable: Error + Send + Sync + 'static {
    /// Returns true for a serialization failure (40001) and a deadlock (40P01, on MySQL 40001), on MySQL also
    /// for 1205 and 1020: nothing stands once the transaction is dropped, and the same transaction may
    /// succeed the next time.
    fn is_retryable(&self) -> bool;
}

/// Returns the words of [`Stop::Refused`].
fn refused(refusal: Refusal) -> String {
    let name = refusal.as_str();
    let seen = refusal.seen().map_or_else(|| "no token".to_owned(), |seen| format!("token {seen}"));
    match refusal {
        Refusal::Jump { got, max, .. } => format!(
            "refused ({name}): the resource has seen {seen}, and {got} is above {max}, the largest that it \
             accepts now: find out who made this token"
        ),
        _ => format!(
            "refused ({name}): the resource has seen {seen}; drop the transaction and acquire the lock again"
        ),
    }
}

/// Returns true for the SQLSTATEs of [`Retryable`].
pub(super) fn is_retryable(sqlstate: Option<&str>) -> bool {
    matches!(sqlstate, Some("40001" | "40P01"))
}
