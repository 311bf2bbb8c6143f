//! B04: an answer that does not arrive is read as "not acquired". What the server granted stays until its
//! TTL.
//!
//! Source: issue 6864 of sim (simstudioai).

use dlock::{Acquisition, Answer, BackendError, Instant};

use super::lock::{Attempt, Mistake};

/// Reads a lost answer as "not acquired".
pub(super) struct NoCleanup;

impl Mistake for NoCleanup {
    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        // An acquisition that nobody looks at again.
        let mut forgotten = own.another();
        match forgotten.request(deadline).await {
            Err(BackendError::NoAnswer | BackendError::Disconnected { .. }) => {
                Ok(Answer::Held { left: None })
            }
            other => other,
        }
    }
}
