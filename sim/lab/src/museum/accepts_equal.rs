//! The resource accepts a token equal to the highest one, even from another owner.

use crate::kit::{ResourceMistake, Shelf, judge_apart};
use resource::ResourceKey;
use resource::fence::{Beside, Fence, Fencing, Position, WriteOutcome};
use resource::store::Write;

/// Refuses lower tokens only.
pub(super) struct AcceptsEqual;

impl ResourceMistake for AcceptsEqual {
    async fn write(
        shelf: &Shelf,
        key: &ResourceKey,
        write: &Write,
        position: Position,
        beside: &Beside,
    ) -> WriteOutcome {
        let passes = |fence: &Fence| match fence.max_fence() {
            Some(seen) if position.token() < seen => judge_apart(fence, position, write.owner.as_ref()),
            _ => Ok(()),
        };
        match shelf.refusal(key, write, passes) {
            Some(refused) => refused,
            None => shelf.apply(key, write, write.guard, beside, Fencing::Off),
        }
    }
}
