//! R03: the token is the lock's value, too: release and renewal compare tokens instead of owners. After the
//! counter is lost, a token is granted twice, and the first of the two owners ends the lease of the second.
//!
//! The key still stores the owner, so that the history can tell the holders apart. A foreign key counts as
//! this holder's if the counter, which is the token of the present holder, equals its token.
//!
//! Source: recipes that save a key by storing the token where the owner belongs.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, Instant, Released, Renewal, Runtime};

/// Deletes the key if it stores the owner, or if the counter is at the token.
const RELEASE: &str = "local is_own = redis.call('GET', KEYS[1]) == ARGV[3] \
                       if is_own or redis.call('GET', KEYS[2]) == ARGV[1] then \
                       return redis.call('DEL', KEYS[1]) end return 0";

/// Sets the key back to its full TTL if it stores the owner, or if the counter is at the token.
const RENEW: &str = "local is_own = redis.call('GET', KEYS[1]) == ARGV[3] \
                     if is_own or redis.call('GET', KEYS[2]) == ARGV[1] then \
                     return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

/// Compares tokens.
pub(super) struct TokenAsValue;

impl LockMistake for TokenAsValue {
    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        if let Answer::Granted { token, .. } = answer {
            own.noted = Some(token.as_u64());
        }
        Ok(answer)
    }

    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let since = own.runtime().now();
        let is_extended = run(own, RENEW, deadline).await?;
        Ok(if is_extended { Renewal::Extended { since, left: own.claim.ttl } } else { Renewal::NotOwner })
    }

    /// Releases an acquire with an unanswered request by the correct script: the mistake needs a known lease.
    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        if own.noted.is_none() || own.needs_cleanup() {
            return own.correct.release(deadline).await;
        }
        let is_deleted = run(own, RELEASE, deadline).await?;
        Ok(if is_deleted { Released::Done } else { Released::NotOwner })
    }
}

async fn run(own: &Attempt, script: &str, deadline: Instant) -> Result<bool, BackendError> {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(2).arg(own.claim.key.owner_key()).arg(own.claim.key.fence_key());
    command.arg(own.noted.unwrap_or_default()).arg(own.claim.ttl.as_millis() as u64);
    command.arg(own.claim.owner.as_str());
    own.by(deadline, own.wire.ask::<bool>(&command)).await
}
