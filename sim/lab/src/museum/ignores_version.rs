//! The resource accepts a conditional write with any version.

use crate::kit::{ResourceMistake, Shelf};
use resource::ResourceKey;
use resource::fence::Guard;
use resource::store::Write;

/// Checks the stored version against itself.
pub(super) struct IgnoresVersion;

impl ResourceMistake for IgnoresVersion {
    fn guard(shelf: &Shelf, key: &ResourceKey, _: &Write) -> Guard {
        Guard::Version { expected: shelf.rows().get(key).map_or(0, |row| row.fence.version) }
    }
}
