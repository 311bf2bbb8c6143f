//! R05: the token is checked in the application's memory alone. There are several instances of the
//! application, and none of them knows the tokens that the others have seen.
//!
//! Here each writer has an instance of its own, as behind a balancer that keeps clients apart.
//!
//! Source: services that keep "the highest token so far" in a field.

use crate::kit::{ResourceMistake, Shelf};
use resource::ResourceKey;
use resource::fence::{Beside, Fencing, Mark, Position, WriteOutcome};
use resource::store::Write;

/// Checks only the tokens that the writer's own instance has seen.
pub(super) struct TokenInMemory;

impl ResourceMistake for TokenInMemory {
    async fn write(
        shelf: &Shelf,
        key: &ResourceKey,
        write: &Write,
        position: Position,
        beside: &Beside,
    ) -> WriteOutcome {
        let owner = write.owner.as_ref();
        let name = owner.map(|owner| owner.as_str().split(':').next().unwrap_or_default().to_owned());
        let instance = name.unwrap_or_default();
        let mark = Mark { position, owner: owner.cloned() };
        // A claim is judged by the same rule as a write.
        let judged = {
            let mut rows = shelf.rows();
            let fence = rows.entry(key.clone()).or_default().instances.entry(instance).or_default();
            fence.claim_beside(&mark, beside, Fencing::On)
        };
        if let Some(refused) = shelf.refusal(key, write, |_| judged) {
            return refused;
        }
        shelf.apply(key, write, write.guard, beside, Fencing::Off)
    }
}
