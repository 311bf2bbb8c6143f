//! R14: a semaphore in a sorted set is ordered by the clocks of its clients. A client whose clock is ahead
//! removes the permits of others, which are still valid.
//!
//! Source: redis-semaphore, whose scripts get `Date.now()` of the client; the first form of the semaphore in
//! Carlson, "Redis in Action", section 6.3.1, which says so itself.

use dlock::{Answer, BackendError, FencingToken, Instant, Runtime};

use crate::kit::{Attempt, LockMistake};

/// As `acquire_permit.lua`, with the time of the client in ARGV[4].
const ACQUIRE: &str = "local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[4]) \
                       for _, owner in ipairs(over) do \
                       redis.call('ZREM', KEYS[1], owner) redis.call('HDEL', KEYS[2], owner) end \
                       if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end \
                       redis.call('INCR', KEYS[3]) local fence = redis.call('GET', KEYS[3]) \
                       redis.call('ZADD', KEYS[1], string.format('%.0f', ARGV[4] + ARGV[2]), ARGV[1]) \
                       redis.call('HSET', KEYS[2], ARGV[1], fence) return fence";

/// Acquires by the client's clock.
pub(super) struct ClientClock;

impl LockMistake for ClientClock {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let since = own.runtime().now();
        let (key, now_ms) = (&own.claim.key, own.runtime().wall_nanos() / 1_000_000);
        let mut command = redis::cmd("EVAL");
        command.arg(ACQUIRE).arg(3).arg(key.permits_key()).arg(key.tokens_key()).arg(key.fence_key());
        command.arg(own.claim.owner.as_str()).arg(own.claim.ttl.as_millis() as u64);
        command.arg(own.claim.permits).arg(now_ms);
        let count = own.by(deadline, own.wire.ask::<u64>(&command)).await?;
        Ok(match FencingToken::new(count) {
            Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
            None => Answer::Taken { left: None },
        })
    }
}
