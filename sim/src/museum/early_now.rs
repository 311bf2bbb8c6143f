//! B32: `now` is taken before a pause and used after it. The key's end is computed when the acquire begins;
//! by the time that it is stored, a part of the lease is over, and the holder counts from the storing.
//!
//! Source: ShedLock issue 132.

use dlock::{Answer, BackendError, FencingToken, Instant, Runtime};

use super::lock::{Attempt, Mistake};

/// Stores the owner until a point in time, unless there is one; counts the grants.
const ACQUIRE: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2]) then \
                       return redis.call('INCR', KEYS[2]) end return 0";

/// Computes the end of the lease once.
pub(super) struct EarlyNow;

impl Mistake for EarlyNow {
    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let ttl = own.claim.ttl.as_millis() as u64;
        let wall_millis = own.runtime().wall_nanos() / 1_000_000;
        let until = *own.noted.get_or_insert(wall_millis + ttl);
        let since = own.runtime().now();
        let mut command = redis::cmd("EVAL");
        command.arg(ACQUIRE).arg(2).arg(own.claim.key.owner_key()).arg(own.claim.key.fence_key());
        command.arg(own.claim.owner.as_str()).arg(until);
        own.plain = true;
        let count = own.by(deadline, own.wire.ask::<u64>(&command)).await?;
        own.plain = false;
        Ok(match FencingToken::new(count) {
            Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
            None => Answer::Held { left: None },
        })
    }
}
