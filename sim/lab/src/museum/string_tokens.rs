//! R11: the resource compares tokens as text. Token 10 counts as older than token 9, and its holder is
//! refused.
//!
//! Source: common where tokens are kept in a text column or a header.

use std::cmp::Ordering;

use crate::kit::{ResourceMistake, Shelf};
use resource::ResourceKey;
use resource::fence::{Fence, Fencing, Position, Refusal, WriteOutcome, judge};
use resource::store::Write;

/// Compares digit by digit, from the left.
pub(super) struct StringTokens;

impl ResourceMistake for StringTokens {
    async fn write(shelf: &Shelf, key: &ResourceKey, write: &Write, position: Position) -> WriteOutcome {
        match shelf.refusal(key, write, |fence| passes(fence, write, position)) {
            Some(refused) => refused,
            None => shelf.apply(key, write, write.guard, Fencing::Off),
        }
    }
}

/// Judges as the correct resource does where both tokens have as many digits.
fn passes(fence: &Fence, write: &Write, position: Position) -> Result<(), Refusal> {
    let Some(seen) = fence.max_fence() else { return Ok(()) };
    let got = position.token();
    match got.to_string().cmp(&seen.to_string()) {
        Ordering::Less => Err(Refusal::Stale { seen, got }),
        Ordering::Equal => judge(fence.highest.as_ref(), position, write.owner.as_ref()),
        Ordering::Greater => Ok(()),
    }
}
