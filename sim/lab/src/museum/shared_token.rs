//! B03: one owner token is shared by several tasks, so that each of them can release and renew the lease of
//! another.
//!
//! The key still stores who acquired it, so that the history can tell the tasks apart; the comparison, which
//! would be of the shared token with itself, is left out.
//!
//! Source: aredis issue 119.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, BackendError, Instant, Released, Renewal, Runtime};

/// Acts for any task that holds the lock.
pub(super) struct SharedToken;

impl LockMistake for SharedToken {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let since = own.runtime().now();
        let ttl = own.claim.ttl.as_millis() as u64;
        let mut command = redis::cmd("PEXPIRE");
        let extend = own.wire.ask::<bool>(command.arg(own.claim.key.owner_key()).arg(ttl));
        let is_extended = own.by(deadline, extend).await?;
        Ok(if is_extended { Renewal::Extended { since, left: own.claim.ttl } } else { Renewal::NotOwner })
    }

    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        if own.needs_cleanup() {
            return own.correct.release(deadline).await;
        }
        let mut command = redis::cmd("DEL");
        let del = own.wire.ask::<bool>(command.arg(own.claim.key.owner_key()));
        let is_deleted = own.by(deadline, del).await?;
        Ok(if is_deleted { Released::Done } else { Released::NotOwner })
    }
}
