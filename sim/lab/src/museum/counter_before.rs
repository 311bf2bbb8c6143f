//! R01: the counter is incremented before `SET NX`. A client that is slow between the two, or has to wait for
//! the lock, gets it with a token below that of an earlier holder, and all its writes are refused.
//!
//! Source: recipes that fetch a token by INCR and then take the lock.

use dlock::{Answer, BackendError, FencingToken, Instant, Runtime};

use crate::kit::{Attempt, LockMistake};
use crate::wire::ask;

/// Counts, then acquires.
pub(super) struct CounterBefore;

impl LockMistake for CounterBefore {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let (claim, wire, runtime) = (own.claim.clone(), own.wire.clone(), own.runtime().clone());
        let counted = own.noted;
        let acquire = async move {
            let mut connection = wire.open().await?;
            let count: u64 = match counted {
                Some(count) => count,
                None => ask(&mut connection, redis::cmd("INCR").arg(claim.key.fence_key())).await?,
            };
            // Here, and until the lock is free, another client may count, acquire and write.
            let since = runtime.now();
            let mut set = redis::cmd("SET");
            set.arg(claim.key.owner_key()).arg(claim.owner.as_str()).arg("NX");
            let is_set: Option<String> =
                ask(&mut connection, set.arg("PX").arg(claim.ttl.as_millis() as u64)).await?;
            Ok((count, is_set.is_some(), since))
        };
        let (count, is_set, since) = own.by(deadline, acquire).await?;
        own.noted = Some(count);
        Ok(match FencingToken::new(count).filter(|_| is_set) {
            Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
            None => Answer::Taken { left: None },
        })
    }
}
