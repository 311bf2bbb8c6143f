//! B31: a fair queue evicts live waiters. A waiter that has waited for a TTL assumes that the one ahead of it
//! is dead, and deletes its key.
//!
//! Source: Redisson issue 1104.

use crate::kit::{Attempt, LockMistake};
use dlock::etcd::Etcd;
use dlock::{Acquisition, Answer, BackendError, Instant, Runtime};
use sim::world::runtime::SimRuntime;

/// Deletes the key ahead after a TTL.
pub(super) struct QueueEvicts;

impl LockMistake<Etcd<SimRuntime>> for QueueEvicts {
    async fn request(own: &mut Attempt<Etcd<SimRuntime>>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        if let Answer::Queued { position } = answer {
            own.noted = Some(position);
        }
        Ok(answer)
    }

    async fn wait(own: &mut Attempt<Etcd<SimRuntime>>, deadline: Instant) -> Result<(), BackendError> {
        let patience = own.runtime().now() + own.claim.ttl;
        own.correct.wait(deadline.min(patience)).await?;
        let Some(position) = own.noted.filter(|_| own.runtime().now() >= patience) else { return Ok(()) };
        let evict = async {
            if let Some(ahead) = own.etcd.ahead(&own.claim, position).await?.kv {
                own.etcd.delete(ahead.key(), false).await?;
            }
            Ok(())
        };
        own.by(deadline, evict).await
    }
}
