//! B10: a renewal that finds the lease gone acquires it anew, and its holder goes on as if nothing had happened.
//!
//! Source: redis-semaphore issue 175, redlock-rb issue 36.

use dlock::Instant;
use dlock::backend::{Answer, Backend, BackendError, Claim, Renewal};

use super::lock::{MutantLock, MutantTrail};

pub(super) async fn renew(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Renewal, BackendError> {
    let renewal = lock.correct.renew(claim, &mut trail.correct, patience).await?;
    if renewal != Renewal::NotOwner {
        return Ok(renewal);
    }
    // Somebody else may have held it in between; the new token is not even looked at.
    match lock.correct.acquire(claim, &mut trail.correct, patience).await? {
        Answer::Granted { since, left, .. } => Ok(Renewal::Extended { since, left }),
        Answer::Held { .. } | Answer::Queued { .. } => Ok(Renewal::NotOwner),
    }
}
