//! R17: the readers of a lock are counted, and their leases have no end. A reader that crashes bars all
//! writers for ever.
//!
//! Here the count is that of a sorted set, so that a repeated release counts once: the plain form, `INCR` and
//! `DECR`, has that mistake as well. The ends of the leases are hundreds of thousands of years ahead.

use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant, Released, Renewal, Runtime};

use crate::kit::{Attempt, LockMistake};

const READ: &str = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end \
                    redis.call('ZADD', KEYS[2], '9000000000000000', ARGV[1]) redis.call('INCR', KEYS[3]) \
                    return redis.call('GET', KEYS[3])";

const WRITE: &str = "if redis.call('ZCARD', KEYS[2]) > 0 then return 0 end \
                     if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end \
                     redis.call('INCR', KEYS[3]) return redis.call('GET', KEYS[3])";

/// Counts readers for ever.
pub(super) struct EternalReaders;

impl LockMistake for EternalReaders {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let since = own.runtime().now();
        let mut command = redis::cmd("EVAL");
        let key = &own.claim.key;
        command.arg(if own.claim.is_shared() { READ } else { WRITE });
        command.arg(3).arg(key.owner_key()).arg(key.readers_key()).arg(key.fence_key());
        command.arg(own.claim.owner.as_str()).arg(own.claim.ttl.as_millis() as u64);
        let count = own.by(deadline, own.wire.ask::<u64>(&command)).await?;
        Ok(match FencingToken::new(count) {
            Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
            None => Answer::Taken { left: None },
        })
    }

    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        if !own.claim.is_shared() {
            return own.correct.renew(deadline).await;
        }
        Ok(Renewal::Extended { since: own.runtime().now(), left: own.claim.ttl })
    }

    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        if !own.claim.is_shared() {
            return own.correct.release(deadline).await;
        }
        let mut command = redis::cmd("ZREM");
        command.arg(own.claim.key.readers_key()).arg(own.claim.owner.as_str());
        let count = own.by(deadline, own.wire.ask::<u64>(&command)).await?;
        Ok(if count == 1 { Released::Done } else { Released::NotOwner })
    }
}
