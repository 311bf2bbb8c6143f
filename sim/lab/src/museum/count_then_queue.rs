//! R25: a waiter counts those in the queue in one request, and joins them in another: two that count at the
//! same time both join where one may.
//!
//! Source: every limit that is checked before it is used; `LLEN` and then `RPUSH` on Redis.

use std::future::Future;

use dlock::etcd::Etcd;
use dlock::redis::Redis;
use dlock::zookeeper::ZooKeeper;
use dlock::{Acquisition, Answer, BackendError, Instant};
use sim::world::runtime::SimRuntime;

use crate::Correct;
use crate::kit::{Attempt, LockMistake};

/// Joins a queue that had room when it counted.
pub(super) struct CountThenQueue;

impl<B: Countable> LockMistake<B> for CountThenQueue {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        if let Some(limit) = own.claim.queue.filter(|_| own.noted.is_none()) {
            let waiting = B::waiting(own, deadline).await?;
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

/// A lock whose waiters a client can count by a request of its own.
pub(super) trait Countable: Correct {
    /// Counts the waiters of the claim's key.
    fn waiting(
        own: &Attempt<Self>,
        deadline: Instant,
    ) -> impl Future<Output = Result<u32, BackendError>> + Send;
}

impl Countable for Redis<SimRuntime> {
    async fn waiting(own: &Attempt<Self>, deadline: Instant) -> Result<u32, BackendError> {
        let mut count = redis::cmd("ZCARD");
        count.arg(own.claim.key.waiters_key());
        own.by(deadline, own.wire.ask::<u32>(&count)).await
    }
}

impl Countable for Etcd<SimRuntime> {
    async fn waiting(own: &Attempt<Self>, deadline: Instant) -> Result<u32, BackendError> {
        Ok(behind_holder(own.by(deadline, own.etcd.count(&own.claim)).await?))
    }
}

impl Countable for ZooKeeper<SimRuntime> {
    async fn waiting(own: &Attempt<Self>, deadline: Instant) -> Result<u32, BackendError> {
        Ok(behind_holder(own.zookeeper.count(&own.claim, deadline).await?))
    }
}

/// Returns the number of waiters among this many entries, of which the first one has the lock.
const fn behind_holder(entries: u32) -> u32 {
    entries.saturating_sub(1)
}
