//! B23: the id of the lease is the token. Ids are in no order, and all acquisitions of a session have the
//! same one.
//!
//! Source: etcd, `contrib/lock`, whose storage compares the version of a request with the lease's id.

use crate::kit::{Attempt, LockMistake};
use dlock::etcd::Etcd;
use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant};
use sim::world::runtime::SimRuntime;

/// Uses the lease's id as the token.
pub(super) struct LeaseIdToken;

impl LockMistake<Etcd<SimRuntime>> for LeaseIdToken {
    async fn request(own: &mut Attempt<Etcd<SimRuntime>>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        let Answer::Granted { since, left, .. } = answer else { return Ok(answer) };
        let seen = own.by(deadline, own.etcd.own(&own.claim)).await?;
        let lease = seen.kv.map_or(0, |kv| kv.lease().unsigned_abs());
        let token = FencingToken::new(lease).ok_or(BackendError::NoAnswer)?;
        Ok(Answer::Granted { token, since, left })
    }
}
