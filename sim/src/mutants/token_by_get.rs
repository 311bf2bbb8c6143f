//! B20: the fencing token is read by a GET of the counter after the acquire: by then it may be another's.
//!
//! Source: Redisson's `RFencedLock`.

use dlock::backend::{Answer, Backend, BackendError, Claim};
use dlock::{FencingToken, Instant, timeout_at};

use super::lock::{MutantLock, MutantTrail};

pub(super) async fn acquire(
    lock: &MutantLock,
    claim: &Claim,
    trail: &mut MutantTrail,
    patience: Instant,
) -> Result<Answer, BackendError> {
    let answer = lock.correct.acquire(claim, &mut trail.correct, patience).await?;
    let Answer::Granted { since, left, .. } = answer else { return Ok(answer) };
    // Whatever goes wrong from here on, the lease is the server's to end.
    trail.plain = true;
    let mut command = redis::cmd("GET");
    let get = lock.wire.ask::<u64>(command.arg(claim.key.fence_key()));
    let count = timeout_at(lock.runtime(), patience, get).await.unwrap_or(Err(BackendError::NoAnswer))?;
    trail.plain = false;
    match FencingToken::new(count) {
        Some(token) => Ok(Answer::Granted { token, since, left }),
        None => Err(BackendError::NoAnswer),
    }
}
