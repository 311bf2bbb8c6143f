//! B15: the drift margin is added to the validity instead of subtracted from it.
//!
//! Source: redlock-py issue 3, redsync issue 37.

use dlock::Instant;
use dlock::backend::{Answer, Backend, BackendError, Claim, Renewal};

use super::lock::{MutantLock, MutantTrail};

pub(super) async fn acquire(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Answer, BackendError> {
    let answer = lock.correct.acquire(claim, &mut trail.correct, patience).await?;
    Ok(match answer {
        Answer::Granted { token, since, left } => {
            Answer::Granted { token, since: later(lock, claim, since), left }
        }
        held => held,
    })
}

pub(super) async fn renew(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Renewal, BackendError> {
    let renewal = lock.correct.renew(claim, &mut trail.correct, patience).await?;
    Ok(match renewal {
        Renewal::Extended { since, left } => Renewal::Extended { since: later(lock, claim, since), left },
        lost => lost,
    })
}

/// The lock takes the margin off once: twice the margin later, it has added it.
fn later(lock: &MutantLock, claim: &Claim, since: Instant) -> Instant {
    since + lock.margin(claim.ttl) * 2
}
