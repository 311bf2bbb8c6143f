//! B04: an answer that does not arrive is read as "not acquired". What the server granted stays until its TTL.
//!
//! Source: issue 6864 of sim (simstudioai).

use dlock::Instant;
use dlock::backend::{Answer, Backend, BackendError, Claim};
use dlock::redis::Trail;

use super::lock::MutantLock;

pub(super) async fn acquire(
    lock: &MutantLock,
    claim: &Claim,
    patience: Instant,
) -> Result<Answer, BackendError> {
    // A memory that nobody looks at again.
    let mut forgotten = Trail::default();
    match lock.correct.acquire(claim, &mut forgotten, patience).await {
        Err(BackendError::NoAnswer | BackendError::Disconnected { .. }) => Ok(Answer::Held { left: None }),
        other => other,
    }
}
