//! R36: a lock of several keys gives up when one of them is refused, and forgets those that it has locked
//! before. They stay locked until their leases end, with sessions as long as the client lives.
//!
//! Source: common where several locks are taken in a loop that returns at the first refusal.

use crate::Correct;
use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, Instant, Released, Runtime};

/// Says that a key is released, and does not send it, if a key after it was refused.
pub(super) struct NoRollback;

impl<B: Correct> LockMistake<B> for NoRollback {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        let is_granted = matches!(answer, Answer::Granted { .. });
        if is_granted {
            own.renewed = Some(own.runtime().now());
        }
        // A client locks one key after the other.
        own.client.set(!is_granted);
        Ok(answer)
    }

    async fn release(own: &mut Attempt<B>, deadline: Instant) -> Result<Released, BackendError> {
        if own.renewed.is_some() && own.client.is_set() {
            own.correct = own.another();
            return Ok(Released::Done);
        }
        own.correct.release(deadline).await
    }
}
