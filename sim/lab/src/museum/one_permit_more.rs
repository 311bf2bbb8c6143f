//! R15: of a semaphore on a queue, those are served that have no more than N entries ahead, instead of fewer
//! than N: one permit more is granted than there are.

use dlock::{Acquisition, Answer, BackendError, Instant};

use crate::Correct;
use crate::kit::{Attempt, LockMistake};

/// Counts with `<=`.
pub(super) struct OnePermitMore;

impl<B: Correct> LockMistake<B> for OnePermitMore {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        if own.noted.is_none() {
            own.noted = Some(u64::from(own.claim.permits));
            own.claim.permits += 1;
            own.correct = own.another();
        }
        own.correct.request(deadline).await
    }
}
