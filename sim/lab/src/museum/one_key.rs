//! B36: one lock for unrelated resources: the key lacks the part that distinguishes them, as when two
//! tenants' keys collide. A worker that needs one of them waits for the holder of another.
//!
//! Source: common.

use dlock::LockKey;

use crate::kit::WorkerMistake;

/// Locks the type of the resource.
pub(super) struct OneKey;

impl WorkerMistake for OneKey {
    fn lock_key(key: LockKey) -> LockKey {
        LockKey::new(key.resource_type(), "all").unwrap_or(key)
    }
}
