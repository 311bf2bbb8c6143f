//! B17: the time that a request took is measured on the wall clock. A step back while it is under way makes the lease
//! younger than it is.
//!
//! Source: node-redlock, which subtracts two readings of `Date.now()`.

use std::time::Duration;

use dlock::backend::{Answer, Backend, BackendError, Claim, Renewal};
use dlock::{Instant, Runtime};

use super::lock::{MutantLock, MutantTrail};
use crate::world::runtime::SimRuntime;

pub(super) async fn acquire(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Answer, BackendError> {
    let sent = lock.runtime().wall_nanos();
    let answer = lock.correct.acquire(claim, &mut trail.correct, patience).await?;
    Ok(match answer {
        Answer::Granted { token, left, .. } => {
            Answer::Granted { token, since: since(lock.runtime(), sent), left }
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
    let sent = lock.runtime().wall_nanos();
    let renewal = lock.correct.renew(claim, &mut trail.correct, patience).await?;
    Ok(match renewal {
        Renewal::Extended { .. } => Renewal::Extended { since: since(lock.runtime(), sent) },
        lost => lost,
    })
}

/// When the request was sent, if the wall clock is to be believed, which read `sent` then.
fn since(runtime: &SimRuntime, sent: u64) -> Instant {
    let (now, wall) = (runtime.now(), runtime.wall_nanos());
    if wall >= sent {
        now - Duration::from_nanos(wall - sent)
    } else {
        now + Duration::from_nanos(sent - wall)
    }
}
