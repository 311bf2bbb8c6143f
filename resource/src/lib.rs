//! A resource that distributed locks protect: it refuses writes with a stale fencing token.
//!
//! A lock with a time to live can't keep a paused holder from writing after its lease has ended; the resource
//! can. Build an [`http::App`] on a [`store`] and serve it, or judge writes by [`fence::Fence`] in a service
//! of your own. Write to it with a [`client::Client`] and the token of your grant ([`fence::Guard::Token`]),
//! or without a lock on the condition that nothing has changed ([`fence::Guard::Version`], [`update`]).
//!
//! [`worker`] does what a careful user of a lock does, with a pause at each step. All of these emit the
//! events of `history`, whose audit judges a run.

// The client of the service: writes, reads and claims, with their errors.
pub mod client;
// The digest of a body.
mod digest;
// The events with the target `resource`.
pub mod event;
// The rule over positions: pure, no I/O.
pub mod fence;
// The service: an axum app, and one HTTP/1.1 connection of it over any stream.
pub mod http;
// The name of a resource, in text and in a URL.
mod key;
// The counters of one service, and their Prometheus text.
mod metrics;
// The operations on a resource: writes and reads.
mod operation;
// The owner token that came with a request.
mod owner;
// The stores of values and fences: in memory, or on a disk.
pub mod store;
// Read-modify-write without a lock, by conditional writes.
pub mod update;
// The worker: acquire, read, work, check, write, release.
pub mod worker;

pub use digest::BodyDigest;
pub use fence::Fencing;
pub use key::{KEY_BYTES_MAX, KeyError, ResourceKey};
pub use owner::{OWNER_BYTES_MAX, OwnerError, OwnerToken};

/// Returns the probes of this crate, file by file: the simulator lists those that a search has missed.
#[doc(hidden)]
pub fn probes() -> Vec<&'static dlock_runtime::Probe> {
    [http::probe::ALL, client::probe::ALL, worker::probe::ALL, update::probe::ALL].concat()
}
