//! B02: a release is a bare DEL and a renewal a bare SET, even if another owner holds the lock by then.
//!
//! Source: ShedLock's Redis provider with `safeUpdate` off.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, BackendError, Instant, Released, Renewal, Runtime, timeout_at};

/// Releases and renews without a check of the owner.
pub(super) struct BlindDel;

impl LockMistake for BlindDel {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let since = own.runtime().now();
        let ttl = own.claim.ttl.as_millis() as u64;
        let mut command = redis::cmd("SET");
        command.arg(own.claim.key.owner_key()).arg(own.claim.owner.as_str()).arg("PX").arg(ttl);
        let set = own.wire.ask::<String>(&command);
        timeout_at(own.runtime(), deadline, set).await.unwrap_or(Err(BackendError::NoAnswer))?;
        Ok(Renewal::Extended { since, left: own.claim.ttl })
    }

    /// Releases an acquire with an unanswered request by the correct script: the mistake needs a known lease.
    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        if own.needs_cleanup() {
            return own.correct.release(deadline).await;
        }
        let mut command = redis::cmd("DEL");
        let del = own.wire.ask::<u64>(command.arg(own.claim.key.owner_key()));
        timeout_at(own.runtime(), deadline, del).await.unwrap_or(Err(BackendError::NoAnswer))?;
        Ok(Released::Done)
    }
}
