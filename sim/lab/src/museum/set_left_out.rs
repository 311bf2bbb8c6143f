//! R44: the holder of a permit sends its token alone, as under a mutex. Once a newer permit has written, its
//! writes are refused, though its own permit is live.
//!
//! Source: fenced resources that were built for mutexes, and got a semaphore.

use crate::kit::{Hands, WorkerMistake};
use dlock::{AnyBackend, Handle};
use sim::world::runtime::SimRuntime;

/// Leaves out the set of the permits beside its own.
pub(super) struct SetLeftOut;

impl WorkerMistake for SetLeftOut {
    async fn write(hands: &Hands, handle: &Handle<AnyBackend<SimRuntime>>) {
        hands.put_as(handle.owner(), handle.fence()).await;
    }
}
