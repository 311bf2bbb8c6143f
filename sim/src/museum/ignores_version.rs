//! The resource takes a conditional write whatever version it names.

use resource::ResourceKey;
use resource::fence::Guard;
use resource::store::Write;

use super::store::{Mistake, Shelf};

/// Judges by the version that is stored.
pub(super) struct IgnoresVersion;

impl Mistake for IgnoresVersion {
    fn guard(shelf: &Shelf, key: &ResourceKey, _: &Write) -> Guard {
        Guard::Version { expected: shelf.rows().get(key).map_or(0, |row| row.fence.version) }
    }
}
