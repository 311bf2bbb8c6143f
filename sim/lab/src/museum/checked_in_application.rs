//! B35: the token is checked in the application, not at the store. A worker reads the highest token, compares
//! it with its own and writes; the store takes every write.
//!
//! Source: common.

use crate::kit::{Hands, ResourceMistake, Shelf, WorkerMistake};
use dlock::{AnyBackend, Handle};
use resource::ResourceKey;
use resource::client::ReadAnswer;
use resource::fence::{Beside, Fencing, Position, WriteOutcome};
use resource::store::Write;
use sim::world::runtime::SimRuntime;

/// Checks, then writes, in two requests.
pub(super) struct CheckedInApplication;

impl WorkerMistake for CheckedInApplication {
    async fn write(hands: &Hands, handle: &Handle<AnyBackend<SimRuntime>>) {
        let deadline = handle.valid_until();
        let Ok(ReadAnswer::Read(snapshot)) = hands.client.read(&hands.resource, deadline).await else {
            return;
        };
        if snapshot.max_fence.is_none_or(|seen| seen < handle.fence()) {
            hands.reach("checked").await;
            hands.put(handle, handle.fence()).await;
        }
    }
}

impl ResourceMistake for CheckedInApplication {
    async fn write(
        shelf: &Shelf,
        key: &ResourceKey,
        write: &Write,
        _: Position,
        beside: &Beside,
    ) -> WriteOutcome {
        shelf.apply(key, write, write.guard, beside, Fencing::Off)
    }
}
