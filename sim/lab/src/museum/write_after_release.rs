//! R13: a worker releases first and writes then, as code does whose write is deferred: a buffer is flushed
//! later, or a lock is released at the end of a block and the write is awaited after it.
//!
//! Source: common.

use crate::kit::{Hands, WorkerMistake};
use dlock::{AnyBackend, Handle};
use sim::sim::Section;
use sim::world::runtime::SimRuntime;

/// Writes nothing while it holds the lock, and writes after the release.
pub(super) struct WriteAfterRelease;

impl WorkerMistake for WriteAfterRelease {
    async fn write(_: &Hands, _: &Handle<AnyBackend<SimRuntime>>) {}

    async fn end(hands: &Hands, handle: Handle<AnyBackend<SimRuntime>>, section: Section) {
        let (owner, token) = (handle.owner().clone(), handle.fence());
        drop(section);
        let _ = handle.release().await;
        tracing::info!(
            target: "worker",
            event = "write_sent",
            resource_id_hash = hands.resource.id_hash(),
            owner_token_prefix = owner.prefix(),
            fencing_token = token.as_u64(),
        );
        hands.put_as(&owner, token).await;
    }
}
