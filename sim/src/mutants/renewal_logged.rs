//! B14: a renewal that fails is only logged, and the lease goes on as if it had been renewed.
//!
//! Source: Redisson issue 4698, Consul issue 18271.

use dlock::backend::{Backend, BackendError, Claim, Renewal};
use dlock::{Instant, Runtime};

use super::lock::{MutantLock, MutantTrail};

pub(super) async fn renew(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Renewal, BackendError> {
    match lock.correct.renew(claim, &mut trail.correct, patience).await {
        Ok(Renewal::Extended { since, left }) => Ok(Renewal::Extended { since, left }),
        Ok(Renewal::NotOwner) | Err(_) => {
            Ok(Renewal::Extended { since: lock.runtime().now(), left: claim.ttl })
        }
    }
}
