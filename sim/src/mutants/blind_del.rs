//! B02: a release that is a bare DEL and a renewal that is a bare SET, whoever owns the lock by then.
//!
//! Source: ShedLock's Redis provider with `safeUpdate` off.

use dlock::backend::{Backend, BackendError, Claim, Renewal};
use dlock::{Instant, Released, timeout_at};

use super::lock::{MutantLock, MutantTrail};

pub(super) async fn renew(
    lock: &MutantLock,
    claim: &Claim,
    patience: Instant,
) -> Result<Renewal, BackendError> {
    let since = dlock::Runtime::now(lock.runtime());
    let ttl = claim.ttl.as_millis() as u64;
    let mut command = redis::cmd("SET");
    command.arg(claim.key.owner_key()).arg(claim.owner.as_str()).arg("PX").arg(ttl);
    let set = lock.wire.ask::<String>(&command);
    timeout_at(lock.runtime(), patience, set).await.unwrap_or(Err(BackendError::NoAnswer))?;
    Ok(Renewal::Extended { since, left: claim.ttl })
}

/// An acquire that is still on its way is given up by the correct script: the mistake is made where the lease is known.
pub(super) async fn release(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Released, BackendError> {
    if dlock::backend::Trail::is_open(trail) {
        return lock.correct.release(claim, &mut trail.correct, patience).await;
    }
    let mut command = redis::cmd("DEL");
    let del = lock.wire.ask::<u64>(command.arg(claim.key.owner_key()));
    timeout_at(lock.runtime(), patience, del).await.unwrap_or(Err(BackendError::NoAnswer))?;
    Ok(Released::Done)
}
