//! B24: the token of one holder is its create revision, that of another the revision in the header of an
//! answer. A holder with a header's revision has a token above those of present waiters, whose writes are
//! then refused.
//!
//! Source: possible with etcd's `concurrency.Mutex`, which has both.

use crate::kit::{Attempt, LockMistake};
use dlock::etcd::Etcd;
use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant};
use sim::world::runtime::SimRuntime;

/// Uses the header's revision as the token, unless it had to wait.
pub(super) struct HeaderRevision;

impl LockMistake<Etcd<SimRuntime>> for HeaderRevision {
    async fn request(own: &mut Attempt<Etcd<SimRuntime>>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        if let Answer::Queued { position } = answer {
            own.noted = Some(position);
        }
        let Answer::Granted { since, left, .. } = answer else { return Ok(answer) };
        if own.noted.is_some() {
            return Ok(answer);
        }
        let seen = own.by(deadline, own.etcd.own(&own.claim)).await?;
        let token = FencingToken::new(seen.revision).ok_or(BackendError::NoAnswer)?;
        Ok(Answer::Granted { token, since, left })
    }
}
