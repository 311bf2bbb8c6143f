//! R39: the permits of a semaphore are counted, and have no end. A holder that dies keeps its permit for
//! ever.
//!
//! Here the count is that of a sorted set, so that a repeated release counts once: the plain form, `INCR` and
//! `DECR`, has that mistake as well. The ends of the permits are hundreds of thousands of years ahead.

use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant, Renewal, Runtime};

use crate::kit::{Attempt, LockMistake};

/// Returns the token, and those of the other permits; nothing if all are taken.
const ACQUIRE: &str = "if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return {} end \
                       redis.call('INCR', KEYS[3]) local fence = redis.call('GET', KEYS[3]) \
                       redis.call('ZADD', KEYS[1], '9000000000000000', ARGV[1]) \
                       local tokens = redis.call('HVALS', KEYS[2]) table.insert(tokens, 1, fence) \
                       redis.call('HSET', KEYS[2], ARGV[1], fence) return tokens";

/// Counts permits for ever.
pub(super) struct EternalPermits;

impl LockMistake for EternalPermits {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        if own.claim.permits == 1 {
            return own.correct.request(deadline).await;
        }
        let since = own.runtime().now();
        let key = &own.claim.key;
        let mut command = redis::cmd("EVAL");
        command.arg(ACQUIRE).arg(3).arg(key.permits_key()).arg(key.tokens_key()).arg(key.fence_key());
        command.arg(own.claim.owner.as_str()).arg(own.claim.permits);
        let counts = own.by(deadline, own.wire.ask::<Vec<u64>>(&command)).await?;
        let mut tokens = counts.into_iter().filter_map(FencingToken::new);
        let Some(token) = tokens.next() else { return Ok(Answer::Taken { left: None }) };
        own.beside = Some(tokens.collect());
        Ok(Answer::Granted { token, since, left: own.claim.ttl })
    }

    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        if own.claim.permits == 1 {
            return own.correct.renew(deadline).await;
        }
        Ok(Renewal::Extended { since: own.runtime().now(), left: own.claim.ttl })
    }
}
