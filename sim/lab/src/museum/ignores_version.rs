//! The resource accepts a conditional write with any version.

use resource::ResourceKey;
use resource::fence::Guard;
use resource::store::Write;

use super::store::{Mistake, Shelf};

/// Checks the stored version against itself.
pub(super) struct IgnoresVersion;

impl Mistake for IgnoresVersion {
    fn guard(shelf: &Shelf, key: &ResourceKey, _: &Write) -> Guard {
        Guard::Version { expected: shelf.rows().get(key).map_or(0, |row| row.fence.version) }
    }
}
