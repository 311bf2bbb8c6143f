//! The guarded side of a cron: it knows the last tick that is done, and commits the next.

use std::error::Error;
use std::future::Future;

use dlock::{FencingToken, Instant};

use super::Tick;
use crate::{OwnerToken, Refusal, ResourceKey, WriteSeq};

/// The grant under which ticks are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The cron, by the name of its lock.
    pub key: ResourceKey,
    /// The fencing token of the grant.
    pub token: FencingToken,
    /// The owner token of the grant.
    pub owner: Option<OwnerToken>,
}

/// The state of a cron at its guarded side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The last tick that is done; `None` if none is.
    pub last: Option<Tick>,
    /// The clock of the guarded side, in milliseconds of Unix time; `None` if it has none to offer. The
    /// runner's own counts then.
    pub now_ms: Option<u64>,
}

/// The guarded side: a durable record of the ticks that are done, which refuses stale tokens.
///
/// An implementation keeps two promises. After [`Ticks::claim`] with a token, it takes nothing from a lower
/// one. [`Ticks::commit`] makes the tick done and its result take effect in one durable step, or does
/// neither.
pub trait Ticks: Send + Sync {
    /// The error of the guarded side.
    type Error: Error + Send + Sync + 'static;

    /// Claims the cron for the grant, and returns its state.
    ///
    /// # Errors
    ///
    /// [`TicksError`]; a claim may be asked again.
    fn claim(
        &mut self,
        grant: &Grant,
        deadline: Instant,
    ) -> impl Future<Output = Result<Seen, TicksError<Self::Error>>> + Send;

    /// Commits the tick with the result of its work. `number` counts the commits of the grant, from 1.
    ///
    /// # Errors
    ///
    /// [`TicksError`]. After [`TicksError::Failed`] the tick may be done: the next claim tells.
    fn commit(
        &mut self,
        grant: &Grant,
        number: WriteSeq,
        tick: Tick,
        result: &[u8],
        deadline: Instant,
    ) -> impl Future<Output = Result<(), TicksError<Self::Error>>> + Send;
}

/// A claim that was not granted, or a commit that was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum TicksError<E> {
    /// The token is stale, or another owner's: a newer holder runs the ticks.
    #[error("the claim or commit was refused ({}): a newer holder runs the ticks", .0.as_str())]
    Refused(Refusal),
    /// The tick was committed before.
    #[error("tick {0} is done: nothing is left to do")]
    Done(Tick),
    /// The record of ticks holds something that no commit writes.
    #[error("the record of ticks is damaged: {0}")]
    Corrupt(String),
    /// There was no answer.
    #[error("the record of ticks did not answer: {0}")]
    Failed(#[source] E),
}
