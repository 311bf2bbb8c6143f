//! B16: a grant is not checked for its remaining validity: one that arrives after its TTL counts as new.
//!
//! Source: node-redlock issue 299.

use crate::Correct;
use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, Instant, Runtime};

/// Treats a grant that is too old as new.
pub(super) struct ValidityUnchecked;

impl<B: Correct> LockMistake<B> for ValidityUnchecked {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        let now = own.runtime().now();
        Ok(match answer {
            Answer::Granted { token, since, left } if since + left <= now + own.margin => {
                Answer::Granted { token, since: now, left: own.claim.ttl }
            }
            other => other,
        })
    }
}
