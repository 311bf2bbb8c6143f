//! The correct forms of locks that send their own scripts. A schedule that convicts the mistake must acquit
//! these.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, FencingToken, Instant, Released, Renewal, Runtime};

/// Stores the owner for the TTL and counts the grant, unless another owner is stored. The count is read as
/// text, since a number of Lua is exact up to 2^53 only.
pub(super) const ACQUIRE: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then \
                                  redis.call('INCR', KEYS[2]) return redis.call('GET', KEYS[2]) end return 0";

/// Deletes the key if it stores the owner.
const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// Sets the key back to its full TTL if it stores the owner.
pub(super) const RENEW: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                                return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

/// Acquires, counts and sets the TTL in one step.
pub(super) struct InOneStep;

impl LockMistake for InOneStep {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let since = own.runtime().now();
        let count = run::<u64>(own, ACQUIRE, deadline).await?;
        Ok(match FencingToken::new(count) {
            Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
            None => Answer::Taken { left: None },
        })
    }
}

/// Compares the owner when it renews and when it releases.
pub(super) struct ByOwner;

impl LockMistake for ByOwner {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let since = own.runtime().now();
        let is_extended = run::<bool>(own, RENEW, deadline).await?;
        Ok(if is_extended { Renewal::Extended { since, left: own.claim.ttl } } else { Renewal::NotOwner })
    }

    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        if own.needs_cleanup() {
            return own.correct.release(deadline).await;
        }
        let is_deleted = run::<bool>(own, RELEASE, deadline).await?;
        Ok(if is_deleted { Released::Done } else { Released::NotOwner })
    }
}

async fn run<T: redis::FromRedisValue>(
    own: &Attempt,
    script: &str,
    deadline: Instant,
) -> Result<T, BackendError> {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(2).arg(own.claim.key.owner_key()).arg(own.claim.key.fence_key());
    command.arg(own.claim.owner.as_str()).arg(own.claim.ttl.as_millis() as u64);
    own.by(deadline, own.wire.ask::<T>(&command)).await
}
