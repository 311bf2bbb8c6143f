//! R23: a client reserves a block of tokens and hands them out itself, to save a step at a counter that many
//! share. A token of its block that is used later is below those that others have been given meanwhile.
//!
//! Source: identifiers by "hi/lo" (Ambler, "Mapping Objects to Relational Databases", 1997); sequences with
//! `CACHE` in PostgreSQL, whose manual warns that the values are not in the order of the calls.

use dlock::{Answer, BackendError, FencingToken, Instant, Runtime};

use crate::kit::{Attempt, LockMistake};
use crate::wire::ask;

/// The number of tokens that a client reserves at once.
const BLOCK: u64 = 10;

/// Takes its tokens from a block of its own.
pub(super) struct CachedBlock;

impl LockMistake for CachedBlock {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let (claim, wire, runtime) = (own.claim.clone(), own.wire.clone(), own.runtime().clone());
        let left = own.client.tokens();
        let acquire = async move {
            let mut connection = wire.open().await?;
            let since = runtime.now();
            let mut set = redis::cmd("SET");
            set.arg(claim.key.owner_key()).arg(claim.owner.as_str()).arg("NX");
            let is_set: Option<String> =
                ask(&mut connection, set.arg("PX").arg(claim.ttl.as_millis() as u64)).await?;
            if is_set.is_none() || !left.is_empty() {
                return Ok((is_set.map(|_| left), since));
            }
            let last: u64 =
                ask(&mut connection, redis::cmd("INCRBY").arg(claim.key.fence_key()).arg(BLOCK)).await?;
            Ok((Some(last - BLOCK + 1..last + 1), since))
        };
        let (granted, since) = own.by(deadline, acquire).await?;
        let Some(mut tokens) = granted else { return Ok(Answer::Taken { left: None }) };
        let token = tokens.next().and_then(FencingToken::new);
        own.client.set_tokens(tokens);
        Ok(match token {
            Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
            None => Answer::Taken { left: None },
        })
    }
}
