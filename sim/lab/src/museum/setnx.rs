//! B01: SETNX, then PEXPIRE. A client that dies between the two leaves a key that never expires.
//!
//! Source: redis-py issues 554 and 818.

use dlock::{Answer, BackendError, FencingToken, Instant, Runtime, timeout_at};

use crate::kit::{Attempt, LockMistake};
use crate::wire::ask;

/// Acquires with two commands.
pub(super) struct SetnxThenPexpire;

impl LockMistake for SetnxThenPexpire {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let runtime = own.runtime().clone();
        timeout_at(&runtime, deadline, acquire(own)).await.unwrap_or(Err(BackendError::NoAnswer))
    }
}

async fn acquire(own: &Attempt) -> Result<Answer, BackendError> {
    let mut connection = own.wire.open().await?;
    let (owner_key, fence_key) = (own.claim.key.owner_key(), own.claim.key.fence_key());
    let since = own.runtime().now();
    let is_new: bool =
        ask(&mut connection, redis::cmd("SETNX").arg(&owner_key).arg(own.claim.owner.as_str())).await?;
    if !is_new {
        return Ok(Answer::Taken { left: None });
    }
    // The client may die here.
    let ttl = own.claim.ttl.as_millis() as u64;
    let _: bool = ask(&mut connection, redis::cmd("PEXPIRE").arg(&owner_key).arg(ttl)).await?;
    let count: u64 = ask(&mut connection, redis::cmd("INCR").arg(&fence_key)).await?;
    match FencingToken::new(count) {
        Some(token) => Ok(Answer::Granted { token, since, left: own.claim.ttl }),
        None => Err(BackendError::NoAnswer),
    }
}
