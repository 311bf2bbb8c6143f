//! B04: an answer that does not arrive is read as "not acquired". What the server granted stays until its TTL.
//!
//! Source: issue 6864 of sim (simstudioai).

use dlock::{Acquisition, Answer, Backend, BackendError, Instant};

use super::lock::MutantAcquisition;

pub(super) async fn acquire(own: &mut MutantAcquisition, deadline: Instant) -> Result<Answer, BackendError> {
    // An acquisition that nobody looks at again.
    let mut forgotten = own.lock.correct.open(own.claim.clone());
    match forgotten.request(deadline).await {
        Err(BackendError::NoAnswer | BackendError::Disconnected { .. }) => Ok(Answer::Held { left: None }),
        other => other,
    }
}
