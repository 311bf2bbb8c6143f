//! B02: a release that is a bare DEL and a renewal that is a bare SET, whoever owns the lock by then.
//!
//! Source: ShedLock's Redis provider with `safeUpdate` off.

use dlock::{Acquisition, BackendError, Instant, Released, Renewal, timeout_at};

use super::lock::MutantAcquisition;

pub(super) async fn renew(own: &mut MutantAcquisition, deadline: Instant) -> Result<Renewal, BackendError> {
    let since = dlock::Runtime::now(own.runtime());
    let ttl = own.claim.ttl.as_millis() as u64;
    let mut command = redis::cmd("SET");
    command.arg(own.claim.key.owner_key()).arg(own.claim.owner.as_str()).arg("PX").arg(ttl);
    let set = own.lock.wire.ask::<String>(&command);
    timeout_at(own.runtime(), deadline, set).await.unwrap_or(Err(BackendError::NoAnswer))?;
    Ok(Renewal::Extended { since, left: own.claim.ttl })
}

/// An acquire that is still on its way is given up by the correct script: the mistake is made where the lease is known.
pub(super) async fn release(
    own: &mut MutantAcquisition,
    deadline: Instant,
) -> Result<Released, BackendError> {
    if own.may_be_held() {
        return own.correct.release(deadline).await;
    }
    let mut command = redis::cmd("DEL");
    let del = own.lock.wire.ask::<u64>(command.arg(own.claim.key.owner_key()));
    timeout_at(own.runtime(), deadline, del).await.unwrap_or(Err(BackendError::NoAnswer))?;
    Ok(Released::Done)
}
