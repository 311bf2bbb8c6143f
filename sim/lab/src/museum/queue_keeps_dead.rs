//! B31: a fair queue keeps dead waiters: their keys have no lease. When the first one dies, no other is
//! served.
//!
//! Source: Redisson issue 3004.

use crate::kit::{Attempt, LockMistake};
use dlock::etcd::Etcd;
use dlock::{Acquisition, Answer, BackendError, Instant};
use sim::world::runtime::SimRuntime;

/// Takes its place in the queue without a lease.
pub(super) struct QueueKeepsDead;

impl LockMistake<Etcd<SimRuntime>> for QueueKeepsDead {
    async fn request(own: &mut Attempt<Etcd<SimRuntime>>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        if own.noted.is_none() {
            // Puts the same key again, which loses its lease and keeps its place.
            own.by(deadline, own.etcd.put_without_lease(&own.claim)).await?;
            own.noted = Some(1);
        }
        Ok(answer)
    }
}
