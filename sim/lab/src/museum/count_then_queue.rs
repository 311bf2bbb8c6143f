//! R25: a waiter counts those in the queue in one request, and joins them in another: two that count at the
//! same time both join where one may.
//!
//! Source: every limit that is checked before it is used; `LLEN` and then `RPUSH` on Redis.

use dlock::{Acquisition, Answer, BackendError, Instant};

use crate::kit::{Attempt, LockMistake};

/// Joins a queue that had room when it counted.
pub(super) struct CountThenQueue;

impl LockMistake for CountThenQueue {
    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        if let Some(limit) = own.claim.queue.filter(|_| own.noted.is_none()) {
            let mut count = redis::cmd("ZCARD");
            count.arg(own.claim.key.waiters_key());
            let waiting = own.by(deadline, own.wire.ask::<u32>(&count)).await?;
            if waiting >= limit.max {
                return Ok(Answer::Full { waiting });
            }
            own.noted = Some(waiting.into());
            // The server is asked for a place in any case.
            own.claim.queue = Some(dlock::QueueLimit { max: u32::MAX, ..limit });
            own.correct = own.another();
        }
        own.correct.request(deadline).await
    }
}
