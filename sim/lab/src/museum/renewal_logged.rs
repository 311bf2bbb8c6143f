//! B14: a failed renewal is only logged, and the lease goes on as if it had been renewed.
//!
//! Source: Redisson issue 4698, Consul issue 18271.

use crate::Correct;
use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, BackendError, Instant, Renewal, Runtime};

/// Ignores a failed renewal.
pub(super) struct RenewalLogged;

impl<B: Correct> LockMistake<B> for RenewalLogged {
    async fn renew(own: &mut Attempt<B>, deadline: Instant) -> Result<Renewal, BackendError> {
        match own.correct.renew(deadline).await {
            Ok(Renewal::Extended { since, left }) => Ok(Renewal::Extended { since, left }),
            Ok(Renewal::NotOwner) | Err(_) => {
                Ok(Renewal::Extended { since: own.runtime().now(), left: own.claim.ttl })
            }
        }
    }
}
