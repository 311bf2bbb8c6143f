//! R02: the counter is incremented after `SET NX`. A client that breaks off between the two finds its own key
//! when it retries, assumes that the counter was incremented, and has the token of the previous holder.
//!
//! Source: recipes that take the lock and then fetch a token by INCR.

use dlock::{Answer, BackendError, FencingToken, Instant, Runtime};

use crate::kit::{Attempt, LockMistake};
use crate::wire::ask;

/// Acquires, then counts.
pub(super) struct CounterAfter;

impl LockMistake for CounterAfter {
    const SENDS: bool = true;
    const ASKS_AGAIN: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let since = *own.renewed.get_or_insert(own.runtime().now());
        let (claim, wire) = (own.claim.clone(), own.wire.clone());
        let acquire = async move {
            let mut connection = wire.open().await?;
            let (owner_key, fence_key) = (claim.key.owner_key(), claim.key.fence_key());
            let mut set = redis::cmd("SET");
            set.arg(&owner_key).arg(claim.owner.as_str()).arg("NX");
            let is_set: Option<String> =
                ask(&mut connection, set.arg("PX").arg(claim.ttl.as_millis() as u64)).await?;
            if is_set.is_some() {
                // Here the connection may break.
                return ask(&mut connection, redis::cmd("INCR").arg(fence_key)).await;
            }
            let owner: Option<String> = ask(&mut connection, redis::cmd("GET").arg(owner_key)).await?;
            if owner.as_deref() != Some(claim.owner.as_str()) {
                return Ok(None);
            }
            ask(&mut connection, redis::cmd("GET").arg(fence_key)).await
        };
        let count: Option<u64> = own.by(deadline, acquire).await?;
        let Some(token) = count.and_then(FencingToken::new) else {
            own.renewed = None;
            return Ok(Answer::Taken { left: None });
        };
        Ok(Answer::Granted { token, since, left: own.claim.ttl })
    }
}
