//! B34: the resource checks and then writes, outside a transaction: another write can pass the same check
//! before this one is applied.

use std::time::Duration;

use crate::kit::{ResourceMistake, Shelf, judge_apart};
use dlock::Runtime;
use resource::ResourceKey;
use resource::fence::{Beside, Fence, Fencing, Position, WriteOutcome};
use resource::store::Write;

/// The longest time of its slow disk between the check and the write.
const DISK_MAX: Duration = Duration::from_millis(64);

/// Lets time pass between the check and the write.
pub(super) struct CheckThenWrite;

impl ResourceMistake for CheckThenWrite {
    async fn write(
        shelf: &Shelf,
        key: &ResourceKey,
        write: &Write,
        position: Position,
        beside: &Beside,
    ) -> WriteOutcome {
        let passes = |fence: &Fence| judge_apart(fence, position, write.owner.as_ref());
        if let Some(refused) = shelf.refusal(key, write, passes) {
            return refused;
        }
        let mut random = [0];
        shelf.runtime.fill_random(&mut random);
        let disk = DISK_MAX * u32::from(random[0]) / 256;
        shelf.runtime.sleep_until(shelf.runtime.now() + disk).await;
        shelf.apply(key, write, write.guard, beside, Fencing::Off)
    }
}
