//! R26: a queue on Redis without a time by which a waiter must ask again: one that dies keeps its place, and
//! holds up all behind it.
//!
//! Source: recipes that queue with `RPUSH` and let the head of the list have the lock. Redisson's fair lock
//! has a time limit for each waiter for this reason.

use std::time::Duration;

use dlock::{Acquisition, Answer, BackendError, Instant, QueueLimit};

use crate::kit::{Attempt, LockMistake};

/// A hundred years.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Keeps its place whether it asks or not.
pub(super) struct PatientDead;

impl LockMistake for PatientDead {
    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        if let Some(limit) = own.claim.queue.filter(|limit| limit.patience != FOREVER) {
            own.claim.queue = Some(QueueLimit { patience: FOREVER, ..limit });
            own.correct = own.another();
        }
        own.correct.request(deadline).await
    }
}
