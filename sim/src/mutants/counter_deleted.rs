//! B22: the counter is deleted with the lock: the next token is 1 again, below those in use.
//!
//! Source: Redisson, whose `RFencedLock` keeps its counter in a key that a `delete` of the lock takes along.

use dlock::backend::{Backend, BackendError, Claim};
use dlock::{Instant, Released, timeout_at};

use super::lock::{MutantLock, MutantTrail};

pub(super) async fn release(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Released, BackendError> {
    let released = lock.correct.release(claim, &mut trail.correct, patience).await?;
    if released == Released::Done {
        let mut command = redis::cmd("DEL");
        let del = lock.wire.ask::<u64>(command.arg(claim.key.fence_key()));
        timeout_at(lock.runtime(), patience, del).await.unwrap_or(Err(BackendError::NoAnswer))?;
    }
    Ok(released)
}
