//! R43: a failure is kept as a value is. The calls that come later get it, too, and nobody computes again.
//!
//! Source: caches that keep whatever the computation returned, such as a promise that was rejected.

use crate::Options;
use crate::kit::{Hands, WorkerMistake};
use dlock::{AnyBackend, Lock, LockKey};
use sim::world::runtime::SimRuntime;

/// Returns each failure that is stored.
pub(super) struct FailureKept;

impl WorkerMistake for FailureKept {
    async fn fly(hands: &Hands, lock: &Lock<AnyBackend<SimRuntime>>, key: &LockKey) {
        let Some(known) = hands.begin_flight(key).await else { return };
        if let Some(failure) = hands.stored_result(key).await.filter(|result| result.value.is_err()) {
            return hands.return_result(key, failure.token);
        }
        let Some((handle, section)) = hands.enter(lock, key).await else { return };
        if !hands.finds_result(key, known).await {
            hands.compute(&handle).await;
        }
        drop(section);
        let _ = handle.release().await;
    }
}

/// Makes all drawn workers share results, and the computations of the first one fail.
pub(super) fn fail_first(options: &mut Options) {
    super::no_second_look::fly(options);
    if let Some(first) = options.workers.first_mut() {
        first.fails = Some(1);
    }
}
