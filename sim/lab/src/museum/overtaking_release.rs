//! B06: the release is sent on a connection of its own, and overtakes a SET that is still in flight. The SET
//! then stores a key that nobody releases.
//!
//! Source: redsync, which takes any connection of its pool for the release.

use crate::kit::{Attempt, LockMistake};
use dlock::{BackendError, Instant, Released};

/// Deletes the key if it holds the owner.
const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// Releases once, on another connection, and never again.
pub(super) struct OvertakingRelease;

impl LockMistake for OvertakingRelease {
    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        let mut command = redis::cmd("EVAL");
        command.arg(RELEASE).arg(1).arg(own.claim.key.owner_key()).arg(own.claim.owner.as_str());
        let is_deleted = own.by(deadline, own.wire.ask::<bool>(&command)).await?;
        // Everything that was sent before counts as undone.
        own.correct = own.another();
        Ok(if is_deleted { Released::Done } else { Released::NotOwner })
    }
}
