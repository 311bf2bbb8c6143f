//! B10: a renewal that finds the lease gone acquires it again, and its holder goes on as if it had never
//! lost it.
//!
//! Source: redis-semaphore issue 175, redlock-rb issue 36.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, Instant, Renewal};

/// Acquires again in a renewal.
pub(super) struct SilentReacquire;

impl LockMistake for SilentReacquire {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let renewal = own.correct.renew(deadline).await?;
        if renewal != Renewal::NotOwner {
            return Ok(renewal);
        }
        // Another owner may have held the lock in between; the new token is ignored.
        match own.correct.request(deadline).await? {
            Answer::Granted { since, left, .. } | Answer::Unfenced { since, left } => {
                Ok(Renewal::Extended { since, left })
            }
            Answer::Taken { .. } | Answer::Queued { .. } | Answer::Placed { .. } | Answer::Full { .. } => {
                Ok(Renewal::NotOwner)
            }
        }
    }
}
