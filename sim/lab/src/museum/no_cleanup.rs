//! B04: a lost answer is read as "not acquired". A lease that the server granted stays until its TTL ends.
//!
//! Source: issue 6864 of sim (simstudioai).

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, Instant};

/// Reads a lost answer as "not acquired".
pub(super) struct NoCleanup;

impl LockMistake for NoCleanup {
    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        // This acquisition is never released.
        let mut forgotten = own.another();
        match forgotten.request(deadline).await {
            Err(BackendError::NoAnswer | BackendError::Disconnected { .. }) => {
                Ok(Answer::Taken { left: None })
            }
            other => other,
        }
    }
}
