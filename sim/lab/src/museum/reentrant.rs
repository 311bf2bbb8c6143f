//! B21: a reentrant acquire increments the token. The inner section writes with a token above that of the
//! outer one, whose own write after it is then refused although its lease is valid.
//!
//! Source: Redisson's `RFencedLock`.

use crate::kit::{Hands, WorkerMistake};
use crate::{Options, ReleaseMode, WorkerMode};
use dlock::{AnyBackend, FencingToken, Lock, LockKey};
use sim::world::runtime::SimRuntime;

/// Counts the sections itself, and gives each a token.
pub(super) struct Reentrant;

impl WorkerMistake for Reentrant {
    async fn nest(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let Some((handle, section)) = hands.enter(lock, key).await else { return };
        let (owner, outer) = (handle.owner().clone(), handle.fence());
        hands.put_numbered(&owner, outer, 1).await;
        let mut command = redis::cmd("INCR");
        let count = hands.wire.ask::<u64>(command.arg(key.fence_key())).await;
        // Without an answer, the inner section is not entered.
        if let Some(inner) = count.ok().and_then(FencingToken::new) {
            hands.toil().await;
            hands.put_numbered(&owner, inner, 1).await;
        }
        hands.put_numbered(&owner, outer, 2).await;
        drop(section);
        let _ = handle.release().await;
    }
}

/// Makes all workers that lock one key nest their sections.
pub(super) fn nest_sections(options: &mut Options) {
    for worker in options.workers.iter_mut().filter(|worker| worker.mode == WorkerMode::default()) {
        worker.mode = WorkerMode::new("reentrant");
        (worker.writes, worker.release) = (1, ReleaseMode::default());
    }
}
