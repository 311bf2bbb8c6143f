//! Refuses late writers: the rule over fencing tokens, and its check in your own database transaction.
//!
//! A lock with a time to live can't keep a paused holder from writing after its lease has ended; the resource
//! can. If your resource is a row in PostgreSQL, MySQL or MariaDB, call `check` in the transaction that
//! writes it, with one of the features `tokio-postgres`, `sqlx` (PostgreSQL) and `mysql` (also sqlx).
//! Elsewhere keep a [`Fence`] beside the value and change both in one step.
//!
//! # Map, in the order of reading
//!
//! 1. The rule: [`Fence`] judges each request by its [`Position`]; [`Guard`] is the condition of a write,
//!    [`WriteOutcome`] and [`Refusal`] are the answers. [`MaxJump`] refuses tokens that no lock has granted,
//!    [`Fence::set`] undoes one that was accepted. Pure: no clock, no store, no network.
//! 2. The names: [`ResourceKey`] of the resource, [`OwnerToken`] of the holder, [`BodyDigest`] of a write.
//! 3. The transaction: `check` moves the fence up in the caller's transaction and writes an audit row;
//!    `Entry` is the write that it judges, and `Stop` each reason not to go on. `migrate` creates the tables.
//! 4. After a refusal: [`Refusal::proof`] says what it proves, [`Policy`] the [`NextStep`]. `http` (feature
//!    `axum`) answers such outcomes with 409 or 503, and reads the headers of a fenced request.
//! 5. A cron: [`cron`] says which ticks of a schedule are due (pure); `claim_ticks`, `begin_tick` and
//!    `finish_tick` run them once each, in the caller's transaction.
//! 6. Jobs: `JobQueue` is a queue in a table of PostgreSQL, whose jobs are completed once each in the
//!    caller's transaction.
//! 7. Without these tables: [`FencedTable`] checks and writes in one statement, [`VersionedTable`] needs no
//!    lock, [`TokenLog`] only inserts. `examples/alternatives.rs` compares them, and advisory locks.

// The tokens of the other permits of a semaphore.
mod beside;
// Ticks of a schedule that run once each.
pub mod cron;
// The digest of a body.
mod digest;
// Answers over HTTP and the headers of a fenced request, for axum.
#[cfg(feature = "axum")]
pub mod http;
// The largest step of a token above the highest one seen.
mod jump;
// The name of a resource, in text and in a URL.
mod key;
// The next step after a refusal, a lost lease or no lease.
mod next;
// The owner token that came with a request.
mod owner;
// The rule over positions: pure, no I/O.
mod rule;
// An operator sets a fence to another token.
mod set;
// Statements for a table of the user: a fence column, a version column, unique tokens.
mod table;
// The check in a transaction of the user.
#[cfg(any(feature = "tokio-postgres", feature = "sqlx", feature = "mysql"))]
mod transaction;

pub use beside::{BESIDE_MAX, Beside, BesideError};
pub use digest::BodyDigest;
pub use jump::MaxJump;
pub use key::{KEY_BYTES_MAX, KeyError, ResourceKey};
pub use next::{NextStep, Policy, Proof};
pub use owner::{OWNER_BYTES_MAX, OwnerError, OwnerToken};
pub use rule::{
    Fence, Fencing, Guard, LastWrite, Mark, Permit, Position, Receipt, Refusal, WriteOutcome, WriteSeq, judge,
};
pub use set::FenceMoved;
pub use table::{FencedTable, NotApplied, TokenLog, TooLarge, VersionedTable, bigint};
#[cfg(feature = "mysql")]
pub use transaction::MYSQL_MIGRATIONS;
#[cfg(any(feature = "tokio-postgres", feature = "sqlx"))]
pub use transaction::{CHECK, MIGRATIONS, PostgresTransaction, begin_tick, claim_ticks, finish_tick};
#[cfg(any(feature = "tokio-postgres", feature = "sqlx", feature = "mysql"))]
pub use transaction::{Connection, Entry, Retryable, Stop, UserTransaction, check, migrate};
#[cfg(any(feature = "tokio-postgres", feature = "sqlx"))]
pub use transaction::{Failed, Job, JobQueue, JobStop};
#[cfg(feature = "tokio-postgres")]
pub use transaction::{PostgresTicks, TickStatements};
