//! B32: `now` is taken before a pause and used after it. The key's end is computed when the acquire begins.
//! A part of the lease is over when the key is stored, but the holder counts from that time.
//!
//! Source: ShedLock issue 132.

use std::time::Duration;

use dlock::{Answer, BackendError, FencingToken, Instant, Runtime};

use super::scripted::ACQUIRE;
use crate::kit::{Attempt, LockMistake};

/// The shortest time for which a key is stored.
const SHORTEST: Duration = Duration::from_millis(1);

/// Computes the end of the lease once.
pub(super) struct EarlyNow;

impl LockMistake for EarlyNow {
    const SENDS: bool = true;

    async fn request(own: &mut Attempt, deadline: Instant) -> Result<Answer, BackendError> {
        let since = own.runtime().now();
        // The begin of the first request. Redis refuses a key whose end has passed.
        let began = *own.renewed.get_or_insert(since);
        let left = own.claim.ttl.saturating_sub(since.saturating_since(began)).max(SHORTEST);
        let mut command = redis::cmd("EVAL");
        command.arg(ACQUIRE).arg(2).arg(own.claim.key.owner_key()).arg(own.claim.key.fence_key());
        command.arg(own.claim.owner.as_str()).arg(left.as_millis() as u64);
        let count = own.by(deadline, own.wire.ask::<u64>(&command)).await?;
        Ok(match FencingToken::new(count) {
            Some(token) => Answer::Granted { token, since, left: own.claim.ttl },
            None => Answer::Taken { left: None },
        })
    }
}
