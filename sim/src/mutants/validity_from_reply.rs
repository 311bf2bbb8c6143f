//! B12: validity is counted from the receipt of the reply: too long by the time that the reply was on its way.
//!
//! Source: etcd's client, `client/v3/lease.go`.

use dlock::backend::{Answer, Backend, BackendError, Claim, Renewal};
use dlock::{Instant, Runtime};

use super::lock::{MutantLock, MutantTrail};

pub(super) async fn acquire(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Answer, BackendError> {
    let sent = lock.runtime().now();
    let answer = lock.correct.acquire(claim, &mut trail.correct, patience).await?;
    Ok(match answer {
        Answer::Granted { token, since, left } => {
            // A lease that was granted to an earlier request is as much too young, and no more.
            let on_its_way = lock.runtime().now().saturating_since(sent);
            Answer::Granted { token, since: since + on_its_way, left }
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
        Renewal::Extended { left, .. } => Renewal::Extended { since: lock.runtime().now(), left },
        lost => lost,
    })
}
