//! B13: a lease that can't be renewed is declared lost two times to live after its last renewal, when its key
//! is long gone.
//!
//! Source: microsoft/etcd3 issue 155.

use dlock::backend::{Answer, Backend, BackendError, Claim, Renewal};
use dlock::{Instant, Runtime};

use super::lock::{MutantLock, MutantTrail};

pub(super) async fn acquire(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Answer, BackendError> {
    let answer = lock.correct.acquire(claim, &mut trail.correct, patience).await?;
    if let Answer::Granted { since, .. } = answer {
        trail.renewed = Some(since);
    }
    Ok(answer)
}

pub(super) async fn renew(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Renewal, BackendError> {
    let renewal = lock.correct.renew(claim, &mut trail.correct, patience).await;
    let now = lock.runtime().now();
    match (renewal, trail.renewed) {
        (Ok(Renewal::Extended { since, left }), _) => {
            trail.renewed = Some(since);
            Ok(Renewal::Extended { since, left })
        }
        (Err(_), Some(renewed)) if now < renewed + claim.ttl * 2 => {
            Ok(Renewal::Extended { since: now, left: (renewed + claim.ttl * 2).saturating_since(now) })
        }
        (other, _) => other,
    }
}
