//! R23: a client reserves a block of tokens and hands them out itself, to save a step at a counter that many
//! keys share. A token of its block that is used later is below those that others have been given meanwhile.
//!
//! Source: identifiers by "hi/lo" (Ambler, "Mapping Objects to Relational Databases", 1997); sequences with
//! `CACHE` in PostgreSQL, whose manual warns that the values are not in the order of the calls.

use dlock::redis::shared_counter;
use dlock::{Answer, BackendError, FencingToken, Instant, Renewal, Runtime};

use super::scripted::RENEW;
use crate::kit::{Attempt, LockMistake};
use crate::{Options, Tokens};

/// The number of tokens that a client reserves at once.
const BLOCK: u64 = 10;

/// As `acquire_shared.lua`, with the token in ARGV[3]. If that is 0, the shared counter gives ARGV[4] tokens,
/// and the first one is that of the lease.
const ACQUIRE: &str = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end local token = ARGV[3] \
                       if token == '0' then local last = redis.call('INCRBY', KEYS[2], ARGV[4]) \
                       token = string.format('%.0f', last - ARGV[4] + 1) end \
                       redis.call('SET', KEYS[1], ARGV[1] .. '#' .. token, 'PX', ARGV[2]) return token";

/// Takes its tokens from a block of its own.
pub(super) struct CachedBlock;

impl LockMistake for CachedBlock {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let since = own.runtime().now();
        let counter = shared_counter(own.claim.key.name());
        let mut block = own.client.tokens(&counter);
        let next = block.next();
        // Without an answer the token may have been granted: it is not used again.
        own.client.set_tokens(&counter, block.clone());
        let mut command = redis::cmd("EVAL");
        command.arg(ACQUIRE).arg(2).arg(own.claim.key.owner_key()).arg(counter.as_str());
        command.arg(own.claim.owner.as_str()).arg(own.claim.ttl.as_millis() as u64);
        command.arg(next.unwrap_or(0)).arg(BLOCK);
        let number = own.by(deadline, own.wire.ask::<u64>(&command)).await?;
        let Some(token) = FencingToken::new(number) else {
            own.client.set_tokens(&counter, next.unwrap_or(block.start)..block.end);
            return Ok(Answer::Taken { left: None });
        };
        if next.is_none() {
            own.client.set_tokens(&counter, number + 1..number + BLOCK);
        }
        own.noted = Some(number);
        Ok(Answer::Granted { token, since, left: own.claim.ttl })
    }

    /// Renews as the library does: the token is stored behind the owner, and only this lock knows it.
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let since = own.runtime().now();
        let stored = format!("{}#{}", own.claim.owner.as_str(), own.noted.unwrap_or_default());
        let mut command = redis::cmd("EVAL");
        command.arg(RENEW).arg(1).arg(own.claim.key.owner_key());
        command.arg(stored).arg(own.claim.ttl.as_millis() as u64);
        let is_extended = own.by(deadline, own.wire.ask::<bool>(&command)).await?;
        Ok(if is_extended { Renewal::Extended { since, left: own.claim.ttl } } else { Renewal::NotOwner })
    }
}

/// Makes the keys of a hash slot share a counter, which begins at 0: the lock with the mistake does not read
/// the counters of single keys.
pub(super) fn share_counters(options: &mut Options) {
    (options.redis.tokens, options.redis.fence_start) = (Tokens::Shared, 0);
}
