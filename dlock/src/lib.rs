//! Distributed locks whose every grant carries a monotonic fencing token.
//!
//! A lock is a hint. A process that pauses for longer than its lease wakes up, still sure that it holds the lock, and
//! writes; only the resource can stop it, by refusing a fencing token that is not above all that it has seen. This
//! crate hands out such tokens and says, as exactly as a process can know it, how long a lease may still be trusted.
//!
//! ```no_run
//! use std::time::Duration;
//! use dlock::{Cap, Lock, LockKey, Options, Runtime, redis::Redis};
//!
//! async fn export<R: Runtime>(runtime: R) -> Result<(), Box<dyn std::error::Error>> {
//!     let redis = Redis::new(runtime.clone(), "127.0.0.1:6379");
//!     let lock = Lock::new(redis, Options::new(Duration::from_secs(30)))?;
//!     let deadline = runtime.now() + Duration::from_secs(5);
//!     let handle = lock.acquire(&LockKey::new("report", "42")?, deadline).await?;
//!     let work = async { /* send handle.fence() with every write */ };
//!     handle.while_held(Cap(Duration::from_secs(600)), work).await?;
//!     handle.release().await?;
//!     Ok(())
//! }
//! ```
//!
//! # Map
//!
//! In the order in which to read it:
//!
//! - `runtime.rs`: the seam. Clock, network, scheduler and entropy enter here and nowhere else.
//! - `key.rs`, `token.rs`: what is locked, by whom, in which order.
//! - `lease.rs`, `retry.rs`: the arithmetic of validity and of waiting; pure.
//! - `options.rs`, `error.rs`: what a lock is told, and what it answers when it can't.
//! - `lock.rs`: acquire, straight from top to bottom; `attempt.rs`: one acquisition under way, and what happens when it
//!   is dropped.
//! - `handle.rs`: a lease that is held; `watchdog.rs` renews it; `removal.rs` gives it up.
//! - `backend.rs`: what a lock server must do; `redis/`: the one on Redis, scripts included; `redlock/`: the one on a
//!   majority of several; `etcd/`: the one on etcd, a queue under a session; `zookeeper/`: the same on ZooKeeper.
//! - `event.rs`, `metrics.rs`: what a lock says of itself.

mod attempt;
mod backend;
mod context;
mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod event;
mod handle;
mod held;
mod key;
mod lease;
mod lock;
pub mod metrics;
mod options;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis")]
pub mod redlock;
mod removal;
mod retry;
mod runtime;
mod sweeps;
mod sync;
mod token;
mod watchdog;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

pub use backend::{Acquisition, Answer, Backend, Claim, Released, Renewal};
pub use error::{
    AcquireError, BackendError, LostError, ReleaseError, RenewError, SessionEnd, TryAcquireError,
};
pub use handle::Handle;
pub use key::{KeyError, LockKey, id_hash};
pub use lease::DriftMargin;
pub use lock::Lock;
pub use options::{Options, OptionsError};
pub use retry::Backoff;
pub use runtime::{Elapsed, Instant, Runtime, timeout_at};
pub use token::{FencingToken, Owner, TokenError, owner_prefix};
pub use watchdog::Cap;
