//! B20: the fencing token is read by a GET of the counter after the acquire, when another grant may have
//! raised it.
//!
//! Source: Redisson's `RFencedLock`.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant, timeout_at};

/// Reads the token after the acquire.
pub(super) struct TokenByGet;

impl LockMistake for TokenByGet {
    // If the GET fails, the server may still hold the lease.
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        let Answer::Granted { since, left, .. } = answer else { return Ok(answer) };
        let mut command = redis::cmd("GET");
        let get = own.wire.ask::<u64>(command.arg(own.claim.key.fence_key()));
        let count = timeout_at(own.runtime(), deadline, get).await.unwrap_or(Err(BackendError::NoAnswer))?;
        match FencingToken::new(count) {
            Some(token) => Ok(Answer::Granted { token, since, left }),
            None => Err(BackendError::NoAnswer),
        }
    }
}
