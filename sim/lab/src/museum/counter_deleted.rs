//! B22: a release deletes the counter with the lock, so that the next token is 1 again.
//!
//! Source: Redisson, whose `RFencedLock` keeps its counter in a key that a `delete` of the lock also deletes.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, BackendError, Instant, Released, timeout_at};

/// Deletes the counter with the lock.
pub(super) struct CounterDeleted;

impl LockMistake for CounterDeleted {
    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        let released = own.correct.release(deadline).await?;
        if released == Released::Done {
            let mut command = redis::cmd("DEL");
            let del = own.wire.ask::<u64>(command.arg(own.claim.key.fence_key()));
            timeout_at(own.runtime(), deadline, del).await.unwrap_or(Err(BackendError::NoAnswer))?;
        }
        Ok(released)
    }
}
