//! The protected resource: the fence check, its stores, its HTTP app and client, the worker that uses a lock to write to
//! it, and the audit that judges a history.
//!
//! To read it: [`fence`] is the rule, [`store`] keeps what the rule must remember, [`http`] serves both, [`client`] asks.

// The judgement of a history.
pub mod audit;
// The client of the service: writes, reads and claims, and what a lost reply means.
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
// The owner token that came with a request.
mod owner;
// Where values and fences are kept: in memory, or on a disk.
pub mod store;
// A history in few words, and two side by side.
pub mod story;
// The events that a history may hold.
mod vocabulary;
// Read-modify-write without a lock, by conditional writes.
pub mod update;
// The worker: acquire, read, work, check, write, release.
pub mod worker;

pub use digest::BodyDigest;
pub use fence::Fencing;
pub use key::{KEY_BYTES_MAX, KeyError, ResourceKey};
pub use owner::{OWNER_BYTES_MAX, OwnerError, OwnerToken};
