//! Acquires distributed locks whose every grant carries a fencing token, on Redis, several Redis (Redlock),
//! etcd and ZooKeeper.
//!
//! A lock alone can't protect a resource. A process that pauses for longer than its lease wakes up, still
//! believes that it holds the lock, and writes. Only the resource can stop it, by refusing a fencing token
//! that is below one it has seen. This crate hands out such tokens, and reports as exactly as a process can
//! know for how long a lease may be trusted.
//!
//! # Example
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use dlock::{Cap, FencingToken, Lock, LockKey, Options};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let lock = Lock::connect("redis://127.0.0.1:6379", Options::new(Duration::from_secs(30))).await?;
//!     let key = LockKey::new("orders", "42")?;
//!     // Waits for the lock for at most 5 s. The lease ends after 30 s; it is renewed for at most 5 minutes.
//!     let handle = lock.acquire(&key, lock.deadline_in(Duration::from_secs(5))).await?;
//!     handle.while_held(Cap(Duration::from_secs(300)), write("paid", handle.fence())).await?;
//!     handle.release().await?;
//!     Ok(())
//! }
//!
//! /// Your storage: it must refuse a token below the highest that it has seen.
//! async fn write(state: &str, token: FencingToken) {
//!     println!("order 42: {state}, with token {token}");
//! }
//! ```
//!
//! [`Lock::connect`] takes the URL of any lock server below. A lock server in memory, for a program without
//! one, is the example of [`Backend`].
//!
//! # Map, in the order of reading
//!
//! 1. [`Lock`] acquires leases, with some [`Options`] (a [`Budget`] derives their TTL), on a [`LockKey`]; a
//!    [`Request`] may have a TTL of its own. [`AcquireError`] and [`TryAcquireError`] say why there is none.
//! 2. [`Handle`] is a lease that was granted: its [`FencingToken`], its [`Owner`], its validity (which
//!    [`DriftMargin`] shortens), its renewals (which a [`Cap`] ends) and its release. Work learns
//!    from [`Handle::low`] that little validity is left. [`Handles`] are the leases on several keys, which
//!    [`Lock::acquire_all`] acquires in one order. In a [`Scope`] the lock is reentrant: sections that are
//!    [`Entered`] share one lease. [`election`] makes the holder of a lock a leader, whom others observe.
//!    [`Lock::close`] releases all at the end of a program.
//! 3. The lock servers, each with its options: the table below. [`AnyBackend`] is one of them, chosen at run
//!    time, by a URL with [`ConnectOptions`]; `tls` has the certificates. [`scripts`] is what Redis runs.
//! 4. [`Runtime`] is the program's clock, network, scheduler and entropy; `TokioRuntime` (feature `tokio`,
//!    default) is that of a program on tokio. [`Instant`] is a reading of its clock.
//!    Programs without async code use the module `blocking` (feature `blocking`).
//! 5. [`event`] and [`metrics`]: the events and metrics of every lock. Each acquire, hold and release is also
//!    a `tracing` span, `dlock.acquire`, `dlock.hold` and `dlock.release`, for OpenTelemetry.
//! 6. [`flight`]: of many callers that need one result, one computes it.
//! 7. [`queue`]: a job queue, with a lease and a token for each claim.
//! 8. [`Backend`] and [`Acquisition`]: the traits behind the lock servers. Implement them for one of your
//!    own; the server in memory above is the example of [`Backend`].
//!
//! | type | feature | lock server |
//! |---|---|---|
//! | `redis::Redis` | `redis` (default) | one Redis |
//! | `redlock::Redlock` | `redis` (default) | a majority of several independent Redis |
//! | `etcd::Etcd` | `etcd` | an etcd cluster; first come, first served |
//! | `zookeeper::ZooKeeper` | `zookeeper` | a ZooKeeper ensemble; first come, first served |
//!
//! # What a lock promises
//!
//! - A lease that the server grants is either returned as a [`Handle`] or released again, also if an answer
//!   gets lost, a deadline passes or a future is dropped.
//! - A handle stops trusting its lease before the lease can end at the server, as long as the clocks of
//!   client and server differ in rate by less than the [`DriftMargin`]. On etcd and ZooKeeper, where the last
//!   proof of the session may be older than a grant, the margin of a grant covers less: by the ratio of the
//!   TTL to the session's. A ZooKeeper session must be longer than the TTL by a half and a part of a tick:
//!   see the module `zookeeper`.
//! - A grant that began after an earlier one had returned has the larger fencing token. On etcd and ZooKeeper
//!   this holds as long as the cluster keeps its data. On Redis and Redlock it holds only while the servers
//!   keep the writes that they have acknowledged: see [`FencingToken`].
//!
//! # What it does not promise
//!
//! - Two processes may be inside their critical sections at once, if one of them pauses after its last check.
//!   Send [`Handle::fence`] with every write, and have the resource refuse tokens below the highest that it
//!   has seen.
//! - On Redis and Redlock waiters are not served in the order of their arrival, except on a Redis with
//!   [`Options::waiters_max`].

mod any;
mod attempt;
mod backend;
#[cfg(feature = "blocking")]
pub mod blocking;
mod budget;
mod cleanup;
mod close;
mod connect;
mod context;
mod demand;
pub mod election;
mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod event;
pub mod flight;
mod handle;
mod handles;
mod held;
mod hold;
mod key;
mod lease;
mod lock;
pub mod metrics;
mod nesting;
mod open;
mod options;
pub mod queue;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis")]
pub mod redlock;
mod reentrant;
mod request;
mod retry;
#[cfg(feature = "tls")]
mod secured;
mod setup;
mod several;
mod share;
#[cfg(any(feature = "redis", feature = "etcd"))]
mod single_flight;
mod span;
mod sync;
#[cfg(feature = "tls")]
pub mod tls;
mod token;
#[cfg(feature = "tokio")]
mod tokio;
mod validity;
mod waiting;
mod watchdog;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

pub use any::AnyBackend;
pub use backend::{Acquisition, Answer, Backend, Claim, Holder, QueueLimit, Released, Renewal, Share};
pub use budget::Budget;
pub use close::Closed;
pub use connect::{ConnectError, ConnectOptions, ServerUrl, UrlError};
pub use demand::{Demand, Unfenced};
pub use dlock_runtime::{Backoff, Elapsed, Instant, Runtime, timeout_at};
pub use error::{AcquireAllError, AcquireError, BackendError, KeyLostError, LostError};
pub use error::{ReleaseError, RenewError, TryAcquireError};
pub use handle::Handle;
pub use handles::{Handles, ReleaseAllError};
pub use key::{KeyError, LockKey, id_hash};
pub use lease::DriftMargin;
pub use lock::Lock;
pub use options::{Options, OptionsError};
pub use reentrant::{EnterError, Entered, Left, Scope};
pub use request::Request;
pub use setup::SetupError;
pub use share::UpgradeError;
pub use token::{FencingToken, Owner, TokenError, owner_prefix};
#[cfg(feature = "tokio")]
pub use tokio::{TokioRuntime, TokioStream};
pub use watchdog::Cap;

/// Returns the name and the text of each script that the servers of Redis and Redlock run, for an
/// administrator who loads them (`SCRIPT LOAD`) because the locks' user may run `EVALSHA` but not `EVAL`.
///
/// # Example
///
/// ```
/// let texts: Vec<_> = dlock::scripts().map(|(name, text)| (name, text.len())).collect();
/// assert!(texts.iter().any(|(name, _)| *name == "acquire"));
/// ```
#[cfg(feature = "redis")]
pub fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
    [redis::SCRIPTS, redlock::SCRIPTS].into_iter().flatten().copied()
}

/// Returns the probes of this crate, file by file: the simulator lists those that a search has missed.
#[doc(hidden)]
pub fn probes() -> Vec<&'static dlock_runtime::Probe> {
    let core = [
        attempt::probe::ALL,
        held::probe::ALL,
        watchdog::probe::ALL,
        cleanup::probe::ALL,
        several::probe::ALL,
        reentrant::probe::ALL,
        flight::probe::ALL,
    ];
    [
        &core[..],
        #[cfg(feature = "redis")]
        redis::PROBES,
        #[cfg(feature = "redis")]
        redlock::PROBES,
        #[cfg(feature = "etcd")]
        etcd::PROBES,
        #[cfg(feature = "zookeeper")]
        zookeeper::PROBES,
    ]
    .concat()
    .concat()
}
