//! B16: a grant is not checked for what is left of its validity: one that took longer than the time to live
//! counts as new.
//!
//! Source: node-redlock issue 299.

use dlock::backend::{Answer, Backend, BackendError, Claim};
use dlock::{Instant, Runtime};

use super::lock::{MutantLock, MutantTrail};

pub(super) async fn acquire(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Answer, BackendError> {
    let answer = lock.correct.acquire(claim, &mut trail.correct, patience).await?;
    let now = lock.runtime().now();
    Ok(match answer {
        Answer::Granted { token, since, left } if since + left <= now + lock.margin(claim.ttl) => {
            Answer::Granted { token, since: now, left: claim.ttl }
        }
        other => other,
    })
}
