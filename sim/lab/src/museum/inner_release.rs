//! R21: a reentrant lock does not count its sections, and the first one to leave releases it. The outer
//! section goes on, and writes without the lock.
//!
//! Source: common where "acquired already" is remembered as a flag.

use crate::kit::{Hands, WorkerMistake};
use dlock::{AnyBackend, FencingToken, Lock, LockKey, Owner};
use sim::world::runtime::SimRuntime;

/// Remembers that it holds the lock, and not how often.
pub(super) struct InnerRelease;

impl WorkerMistake for InnerRelease {
    async fn nest(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let Some((handle, section)) = hands.enter(lock, key).await else { return };
        let (owner, token) = (handle.owner().clone(), handle.fence());
        write(hands, &owner, token, 1).await;
        hands.toil().await;
        write(hands, &owner, token, 2).await;
        // The inner section leaves.
        let _ = handle.release().await;
        write(hands, &owner, token, 3).await;
        drop(section);
    }
}

/// Makes the write numbered `number`, and records that it was sent.
async fn write(hands: &Hands, owner: &Owner, token: FencingToken, number: u64) {
    tracing::info!(
        target: "worker",
        event = "write_sent",
        resource_id_hash = hands.resource.id_hash(),
        owner_token_prefix = owner.prefix(),
        fencing_token = token.as_u64(),
        seq = number,
    );
    hands.put_numbered(owner, token, number).await;
}
