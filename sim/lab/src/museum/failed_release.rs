//! B30: ownership is cleared locally although the deletion failed. The node stays for as long as the session,
//! which lives on.
//!
//! Source: CURATOR-678.

use crate::Correct;
use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, BackendError, Instant, Released};

/// Forgets a lease that it could not release.
pub(super) struct FailedRelease;

impl<B: Correct> LockMistake<B> for FailedRelease {
    async fn release(own: &mut Attempt<B>, deadline: Instant) -> Result<Released, BackendError> {
        let released = own.correct.release(deadline).await;
        if released.is_err() {
            own.correct = own.another();
            return Ok(Released::NotOwner);
        }
        released
    }
}
