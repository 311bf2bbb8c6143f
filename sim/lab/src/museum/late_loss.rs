//! B13: a lease that can't be renewed is declared lost two TTLs after its last renewal, long after its key
//! has expired.
//!
//! Source: microsoft/etcd3 issue 155.

use crate::Correct;
use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, Instant, Renewal, Runtime};

/// Declares the loss two TTLs after the last renewal.
pub(super) struct LateLoss;

impl<B: Correct> LockMistake<B> for LateLoss {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        if let Answer::Granted { since, .. } = answer {
            own.renewed = Some(since);
        }
        Ok(answer)
    }

    async fn renew(own: &mut Attempt<B>, deadline: Instant) -> Result<Renewal, BackendError> {
        let renewal = own.correct.renew(deadline).await;
        let (now, twice) = (own.runtime().now(), own.claim.ttl * 2);
        match (renewal, own.renewed) {
            (Ok(Renewal::Extended { since, left }), _) => {
                own.renewed = Some(since);
                Ok(Renewal::Extended { since, left })
            }
            (Err(_), Some(renewed)) if now < renewed + twice => {
                Ok(Renewal::Extended { since: now, left: (renewed + twice).saturating_since(now) })
            }
            (other, _) => other,
        }
    }
}
