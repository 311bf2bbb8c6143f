//! R05: the token is checked in the application's memory alone. There are several instances of the
//! application, and none of them knows the tokens that the others have seen.
//!
//! Here each writer has an instance of its own, as behind a balancer that keeps clients apart.
//!
//! Source: services that keep "the highest token so far" in a field.

use crate::kit::{ResourceMistake, Shelf};
use resource::ResourceKey;
use resource::fence::{Fencing, Mark, Position, WriteOutcome, judge};
use resource::store::Write;

/// Checks only the tokens that the writer's own instance has seen.
pub(super) struct TokenInMemory;

impl ResourceMistake for TokenInMemory {
    async fn write(shelf: &Shelf, key: &ResourceKey, write: &Write, position: Position) -> WriteOutcome {
        let owner = write.owner.as_ref();
        let name = owner.map(|owner| owner.as_str().split(':').next().unwrap_or_default().to_owned());
        let instance = name.unwrap_or_default();
        let seen = shelf.rows().get(key).and_then(|row| row.instances.get(&instance).cloned());
        if let Some(refused) = shelf.refusal(key, write, |_| judge(seen.as_ref(), position, owner)) {
            return refused;
        }
        let mark = Mark { position, owner: owner.cloned() };
        shelf.rows().entry(key.clone()).or_default().instances.insert(instance, mark);
        shelf.apply(key, write, write.guard, Fencing::Off)
    }
}
