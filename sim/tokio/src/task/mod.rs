//! `tokio::task`: each task is one of the simulator's, whose order the run's seed draws. Handles, ids and
//! errors are those of the real tokio.

#[cfg(feature = "rt")]
mod join_set;
#[cfg(feature = "rt")]
mod local;
#[cfg(feature = "rt")]
mod spawned;

#[cfg(feature = "rt")]
pub use real_tokio::task::{
    AbortHandle, Id, JoinError, JoinHandle, LocalKey, consume_budget, coop, futures, id, try_id,
    unconstrained, yield_now,
};

#[cfg(feature = "rt-multi-thread")]
pub use self::spawned::block_in_place;
#[cfg(feature = "rt")]
pub use self::{
    join_set::JoinSet,
    local::{LocalEnterGuard, LocalSet, spawn_local},
    spawned::{spawn, spawn_blocking},
};
