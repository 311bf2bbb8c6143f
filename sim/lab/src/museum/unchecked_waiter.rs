//! B25: after the wait, the waiter's own lease is not checked again. If it ended meanwhile, so did the
//! waiter's key, and another waiter holds the lock.
//!
//! Source: etcd issues 11456 and 9921.

use crate::kit::{Attempt, LockMistake};
use dlock::etcd::Etcd;
use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant, Runtime};
use sim::world::runtime::SimRuntime;

/// Checks only that nobody is ahead of the place that it had.
pub(super) struct UncheckedWaiter;

impl LockMistake<Etcd<SimRuntime>> for UncheckedWaiter {
    async fn request(own: &mut Attempt<Etcd<SimRuntime>>, deadline: Instant) -> Result<Answer, BackendError> {
        let Some(position) = own.noted else {
            let answer = own.correct.request(deadline).await?;
            if let Answer::Queued { position } = answer {
                own.noted = Some(position);
            }
            return Ok(answer);
        };
        let since = own.runtime().now();
        let ahead = own.by(deadline, own.etcd.ahead(&own.claim, position)).await?;
        match FencingToken::new(position) {
            Some(token) if ahead.kv.is_none() => Ok(Answer::Granted { token, since, left: own.claim.ttl }),
            _ => own.correct.request(deadline).await,
        }
    }
}
