//! R35: a process that has computed returns its result, whether the store took it or not. If the process had
//! paused for longer than its lease, the store has refused the result, and all others get another one.
//!
//! Source: common where the put is the last line before `return value`, and its answer is dropped.

use crate::kit::{Hands, WorkerMistake};
use dlock::{AnyBackend, Cap, Lock, LockKey};
use sim::world::runtime::SimRuntime;

/// The longest time of a computation: longer than any run.
const LONGEST: Cap = Cap(std::time::Duration::from_secs(3600));

/// Ignores the answer of the store.
pub(super) struct ReturnsRefused;

impl WorkerMistake for ReturnsRefused {
    async fn fly(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let Some(known) = hands.begin_flight(key).await else { return };
        let Some((handle, section)) = hands.enter(lock, key).await else { return };
        handle.keep_alive(LONGEST);
        if !hands.finds_result(key, known).await {
            hands.store_computed(&handle).await;
            hands.return_result(key, handle.fence());
        }
        drop(section);
        let _ = handle.release().await;
    }
}
