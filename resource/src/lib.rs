//! Protects a resource behind a distributed lock: it refuses writes with a stale fencing token.
//!
//! A lock with a time to live can't keep a paused holder from writing after its lease has ended; the resource
//! can. Use the service of this crate, or its rule ([`fence::Fence`]) in a service of your own. Write to it
//! with the token of your grant, or without a lock on the condition that nothing has changed. All of these
//! emit the events of `history`, whose audit judges a run.
//!
//! # Example
//!
//! A late write is refused:
//!
//! ```
//! use resource::fence::{Guard, Refusal, WriteOutcome};
//! use resource::store::{MemoryStore, Store, Write};
//! use resource::{Fencing, OwnerToken, ResourceKey};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let (store, order) = (MemoryStore::new(), ResourceKey::new("orders:42")?);
//!     let (old, new) = ("33".parse()?, "34".parse()?);
//!
//!     // b holds the lock, and writes with its token.
//!     let owner = Some(OwnerToken::new("b:28999649")?);
//!     let write = Write { guard: Guard::token(new), owner, body: "paid".into() };
//!     let outcome = store.write(&order, &write, Fencing::On).await?;
//!     assert!(matches!(outcome, WriteOutcome::Accepted(_)));
//!
//!     // a was paused for longer than its lease: its write comes too late.
//!     let owner = Some(OwnerToken::new("a:7f3c9e12")?);
//!     let write = Write { guard: Guard::token(old), owner, body: "open".into() };
//!     let outcome = store.write(&order, &write, Fencing::On).await?;
//!     assert_eq!(outcome, WriteOutcome::Refused(Refusal::Stale { seen: new, got: old }));
//!     Ok(())
//! }
//! ```
//!
//! # Map, in the order of reading
//!
//! 1. [`fence`], a crate of its own: the rule. [`fence::Fence`] judges each request by its
//!    [`fence::Position`]; [`fence::Guard`] is the condition of a write. Pure: no clock, no store, no
//!    network.
//! 2. [`store`]: values with their fences. [`store::MemoryStore`] forgets them at a restart,
//!    [`store::RedbStore`] keeps them on a disk. `store::FolderStore` (feature `files`) shares a folder among
//!    processes, `store::BucketStore` (feature `objects`) a bucket of S3.
//! 3. [`http`]: the service. Build an [`http::App`] on a store, and serve its connections.
//! 4. [`client`]: writes and reads over HTTP, with retries after a lost answer.
//! 5. [`update`]: a read-modify-write without a lock, by conditional writes.
//! 6. [`worker`]: does what a careful user of a lock does, with a pause at each step.
//! 7. [`flight`]: keeps the results of single-flight computations in the service.
//! 8. [`cron`]: runs each tick of a schedule once.
//! 9. [`jobs`]: works on the jobs of a queue, each of which takes effect once. With the feature `postgres`
//!    ticks and jobs are also kept in PostgreSQL, over the connections of `postgres`.
//! 10. [`event`]: the events that a store emits.
//! 11. [`bearer`]: the secrets by which clients and operators show who they are.

// The bearer tokens of clients and operators.
pub mod bearer;
// The client of the service: writes, reads and claims, with their errors.
pub mod client;
// Runs each tick of a schedule once, under a lock.
pub mod cron;
// The events with the target `resource`.
pub mod event;
// The results of single-flight computations, kept in the service.
pub mod flight;
// Bytes in hexadecimal.
mod hex;
// Works on the jobs of a queue.
pub mod jobs;
// The service: an axum app, and one HTTP/1.1 connection of it over any stream.
pub mod http;
// The counters of one service, and their Prometheus text.
mod metrics;
// The operations on a resource: writes and reads.
mod operation;
// Connections to PostgreSQL, which are opened when they are needed.
#[cfg(feature = "postgres")]
pub mod postgres;
// The stores of values and fences: in memory, on a disk, in a folder, or in a bucket.
pub mod store;
// Read-modify-write without a lock, by conditional writes.
pub mod update;
// The worker: acquire, read, work, check, write, release.
pub mod worker;

// The rule is a crate of its own, for users whose resource is not this service.
pub use ::fence;
pub use ::fence::{
    BodyDigest, Fencing, KEY_BYTES_MAX, KeyError, MaxJump, OWNER_BYTES_MAX, OwnerError, OwnerToken,
    ResourceKey,
};

/// Returns the probes of this crate, file by file: the simulator lists those that a search has missed.
#[doc(hidden)]
pub fn probes() -> Vec<&'static dlock_runtime::Probe> {
    let worked = [worker::probe::ALL, update::probe::ALL, cron::probe::ALL, jobs::probe::ALL];
    [&[http::probe::ALL, client::probe::ALL], &worked[..]].concat().concat()
}
