//! The resource accepts a token equal to the highest one, even from another owner.

use resource::ResourceKey;
use resource::fence::{Fence, Fencing, Position, WriteOutcome, judge};
use resource::store::Write;

use super::store::{Mistake, Shelf};

/// Refuses lower tokens only.
pub(super) struct AcceptsEqual;

impl Mistake for AcceptsEqual {
    async fn write(shelf: &Shelf, key: &ResourceKey, write: &Write, position: Position) -> WriteOutcome {
        let passes = |fence: &Fence| match fence.max_fence() {
            Some(seen) if position.token() < seen => {
                judge(fence.highest.as_ref(), position, write.owner.as_ref())
            }
            _ => Ok(()),
        };
        match shelf.refusal(key, write, passes) {
            Some(refused) => refused,
            None => shelf.apply(key, write, write.guard, Fencing::Off),
        }
    }
}
