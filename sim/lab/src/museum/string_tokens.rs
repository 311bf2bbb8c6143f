//! R11: the resource compares tokens as text. Token 10 counts as older than token 9, and its holder is
//! refused.
//!
//! Source: common where tokens are kept in a text column or a header.

use std::cmp::Ordering;

use crate::kit::{ResourceMistake, Shelf, judge_apart};
use resource::ResourceKey;
use resource::fence::{Beside, Fence, Fencing, Permit, Position, Refusal, WriteOutcome};
use resource::store::Write;

/// Compares digit by digit, from the left.
pub(super) struct StringTokens;

impl ResourceMistake for StringTokens {
    async fn write(
        shelf: &Shelf,
        key: &ResourceKey,
        write: &Write,
        position: Position,
        beside: &Beside,
    ) -> WriteOutcome {
        match shelf.refusal(key, write, |fence| passes(fence, write, position)) {
            Some(refused) => refused,
            None => shelf.apply(key, write, write.guard, beside, Fencing::Off),
        }
    }
}

/// Judges as the correct resource does where both tokens have as many digits.
fn passes(fence: &Fence, write: &Write, position: Position) -> Result<(), Refusal> {
    let Some(seen) = fence.max_fence() else { return Ok(()) };
    let got = position.token();
    let is_permit = fence.beside.iter().map(Permit::token).any(|token| token == got);
    match got.to_string().cmp(&seen.to_string()) {
        Ordering::Less if !is_permit => Err(Refusal::Stale { seen, got }),
        Ordering::Less | Ordering::Equal => judge_apart(fence, position, write.owner.as_ref()),
        Ordering::Greater => Ok(()),
    }
}
