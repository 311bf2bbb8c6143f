//! B26: a release of a lock that was never acquired deletes the whole queue: the key is empty, so that only
//! the prefix of all claims is left.
//!
//! Source: etcd issue 14704.

use crate::kit::{Attempt, LockMistake, etcd::queue};
use dlock::etcd::Etcd;
use dlock::{Acquisition, Answer, BackendError, Instant, Released, Runtime};
use sim::world::runtime::SimRuntime;

/// Deletes the queue unless it holds the lock.
pub(super) struct PrefixDeleted;

impl LockMistake<Etcd<SimRuntime>> for PrefixDeleted {
    async fn request(own: &mut Attempt<Etcd<SimRuntime>>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        if let Answer::Granted { .. } = answer {
            own.renewed = Some(own.runtime().now());
        }
        Ok(answer)
    }

    async fn release(
        own: &mut Attempt<Etcd<SimRuntime>>,
        deadline: Instant,
    ) -> Result<Released, BackendError> {
        if own.renewed.is_none() {
            own.by(deadline, own.etcd.delete(queue(&own.claim), true)).await?;
        }
        own.correct.release(deadline).await
    }
}
