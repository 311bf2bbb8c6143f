//! Distributed locks whose every grant carries a monotonic fencing token.
//!
//! A lock is a hint. A process that pauses for longer than its lease wakes up, still sure that it holds the lock, and
//! writes; only the resource can stop it, by refusing a fencing token that is not above all that it has seen. This
//! crate hands out such tokens and says, as exactly as a process can know it, how long a lease may still be trusted.

pub mod event;
mod key;
mod runtime;
mod token;

pub use key::{KeyError, LockKey, id_hash};
pub use runtime::{Elapsed, Instant, Runtime, timeout_at};
pub use token::{FencingToken, Owner, TokenError};
