//! Parts for a lock, a worker or a resource with one mistake, which are otherwise correct.
//!
//! A mistake is a type that implements [`LockMistake`], [`WorkerMistake`] or [`ResourceMistake`], and
//! replaces the calls in which the mistake is made. [`lock_with`], [`rounds_with`] and [`resource_with`] make
//! the part for [`Lab::with_lock`](crate::Lab::with_lock), [`Lab::with_worker`](crate::Lab::with_worker) and
//! [`Lab::with_resource`](crate::Lab::with_resource). [`Faultless`] makes the twin, the same part without a
//! mistake, which every schedule must acquit.
//!
//! A lock whose release is a bare DEL, and a search that convicts it:
//!
//! ```
//! use dlock::redis::Redis;
//! use dlock::{BackendError, Instant, Released};
//! use lab::kit::{Attempt, Faultless, LockMistake, lock_with};
//! use lab::{Arm, Lab, System};
//! use sim::VerdictKind;
//! use sim::explore::{Broken, Portfolio, explore};
//!
//! struct BlindDel;
//!
//! impl LockMistake for BlindDel {
//!     async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
//!         let mut command = redis::cmd("DEL");
//!         own.by(deadline, own.wire.ask::<u64>(command.arg(own.claim.key.owner_key()))).await?;
//!         Ok(Released::Done)
//!     }
//! }
//!
//! let lab = || Lab::new(Arm::Fenced).drawing(System::REDIS);
//! let mistaken = [lab().with_lock(lock_with::<Redis<_>, BlindDel>)];
//! let found = explore(&mistaken, 0..100, &Portfolio::default(), 1, |tally| tally.violations == 0)?;
//! assert!(found.violations[0].shows(&Broken::Verdict(VerdictKind::ForeignRelease)));
//!
//! let twin = [lab().with_lock(lock_with::<Redis<_>, Faultless>)];
//! let found = explore(&twin, 0..100, &Portfolio::default(), 1, |_| true)?;
//! assert_eq!(found.tally.violations, 0);
//! # Ok::<(), sim::RunError>(())
//! ```

pub mod etcd;
mod flights;
mod jobs;
mod lock;
mod several;
mod store;
mod ticks;
mod worker;
pub mod zookeeper;

pub use jobs::{jobs, jobs_with, jobs_with_asynchronous_commits, jobs_without_tokens};
pub use lock::{Attempt, LockMistake, Memory, lock_with};
pub use store::{ResourceMistake, Row, Rows, Shelf, judge_apart, resource_with};
pub use ticks::{firings, firings_with};
pub use worker::{Hands, WorkerMistake, rounds_on, rounds_with};

/// No mistake: the twin of a lock, a worker or a resource with one.
pub struct Faultless;
