//! B12: validity is counted from the receipt of the reply: too long by the time that the reply was on its
//! way.
//!
//! Source: etcd's client, `client/v3/lease.go`.

use dlock::{Acquisition, Answer, BackendError, Instant, Renewal, Runtime};

use super::correct::Correct;
use super::lock::{Attempt, Mistake};

/// Counts validity from the reply.
pub(super) struct ValidityFromReply;

impl<B: Correct> Mistake<B> for ValidityFromReply {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let sent = own.runtime().now();
        let answer = own.correct.request(deadline).await?;
        Ok(match answer {
            Answer::Granted { token, since, left } => {
                // A lease that was granted to an earlier request is as much too young, and no more.
                let on_its_way = own.runtime().now().saturating_since(sent);
                Answer::Granted { token, since: since + on_its_way, left }
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
