//! B12: validity is counted from the receipt of the reply, so that it is too long by the duration of the
//! request.
//!
//! Source: etcd's client, `client/v3/lease.go`.

use crate::Correct;
use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, Instant, Renewal, Runtime};

/// Counts validity from the reply.
pub(super) struct ValidityFromReply;

impl<B: Correct> LockMistake<B> for ValidityFromReply {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let sent = own.runtime().now();
        let answer = own.correct.request(deadline).await?;
        Ok(match answer {
            Answer::Granted { token, since, left } => {
                // A lease that was granted to an earlier request is off by the same duration, not by more.
                let took = own.runtime().now().saturating_since(sent);
                Answer::Granted { token, since: since + took, left }
            }
            held => held,
        })
    }

    async fn renew(own: &mut Attempt<B>, deadline: Instant) -> Result<Renewal, BackendError> {
        let renewal = own.correct.renew(deadline).await?;
        Ok(match renewal {
            Renewal::Extended { left, .. } => Renewal::Extended { since: own.runtime().now(), left },
            lost => lost,
        })
    }
}
