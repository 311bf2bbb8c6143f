//! B36: one lock for unrelated resources: the key has lost the part that tells them apart, as when two
//! tenants' keys collide. Whoever needs one of them waits for the holder of another.
//!
//! Source: common.

use dlock::LockKey;

use super::worker::Mistake;

/// Locks the type of the resource.
pub(super) struct OneKey;

impl Mistake for OneKey {
    fn lock_key(key: LockKey) -> LockKey {
        LockKey::new(key.resource_type(), "all").unwrap_or(key)
    }
}
