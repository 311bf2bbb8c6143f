//! R42: results are valid until they expire, and nobody compares them with what a caller knows. A caller that
//! knows its result to be out of date gets it again.
//!
//! Source: caches with a time to live and nothing else.

use crate::kit::{Hands, WorkerMistake};
use dlock::{AnyBackend, Lock, LockKey};
use sim::world::runtime::SimRuntime;

/// Takes each result that has not expired. Here they last for longer than any run.
pub(super) struct ExpiryAlone;

impl WorkerMistake for ExpiryAlone {
    async fn fly(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let Some(_) = hands.begin_flight(key).await else { return };
        if hands.finds_result(key, 0).await {
            return;
        }
        let Some((handle, section)) = hands.enter(lock, key).await else { return };
        if !hands.finds_result(key, 0).await {
            hands.compute(&handle).await;
        }
        drop(section);
        let _ = handle.release().await;
    }
}
