//! B21: a reentrant acquire increments the token. The inner section writes with a token above that of the
//! outer one, whose own write is then refused although its lease is valid.
//!
//! Source: Redisson's `RFencedLock`.

use crate::kit::{Hands, WorkerMistake};
use dlock::{AnyBackend, FencingToken, Handle};
use sim::world::runtime::SimRuntime;

/// Writes in an inner section, then in the outer one.
pub(super) struct Reentrant;

impl WorkerMistake for Reentrant {
    async fn write(hands: &Hands, handle: &Handle<AnyBackend<SimRuntime>>) {
        let mut command = redis::cmd("INCR");
        let count = hands.wire.ask::<u64>(command.arg(handle.key().fence_key())).await;
        // Without an answer, the inner section is not entered.
        if let Some(inner) = count.ok().and_then(FencingToken::new) {
            hands.put(handle, inner).await;
        }
        hands.put(handle, handle.fence()).await;
    }
}
