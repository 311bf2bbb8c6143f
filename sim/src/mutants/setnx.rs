//! B01: SETNX, then PEXPIRE. A client that dies between the two leaves a key that never expires.
//!
//! Source: redis-py issues 554 and 818.

use dlock::FencingToken;
use dlock::backend::{Answer, Backend, BackendError, Claim};

use super::lock::{MutantLock, MutantTrail};
use super::wire::ask;

pub(super) async fn acquire(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
) -> Result<Answer, BackendError> {
    let mut connection = lock.wire.open().await?;
    let (owner_key, fence_key) = (claim.key.owner_key(), claim.key.fence_key());
    let since = dlock::Runtime::now(lock.runtime());
    trail.plain = true;
    let is_new: bool =
        ask(&mut connection, redis::cmd("SETNX").arg(&owner_key).arg(claim.owner.as_str())).await?;
    if !is_new {
        trail.plain = false;
        return Ok(Answer::Held { left: None });
    }
    // Here the client may die.
    let ttl = claim.ttl.as_millis() as u64;
    let _: bool = ask(&mut connection, redis::cmd("PEXPIRE").arg(&owner_key).arg(ttl)).await?;
    let count: u64 = ask(&mut connection, redis::cmd("INCR").arg(&fence_key)).await?;
    trail.plain = false;
    match FencingToken::new(count) {
        Some(token) => Ok(Answer::Granted { token, since, left: claim.ttl }),
        None => Err(BackendError::NoAnswer),
    }
}
