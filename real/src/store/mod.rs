//! Stores for the live resource: the library's stores on threads that may block, PostgreSQL, and blobs
//! guarded by a store.

mod admin;
mod blob;
mod blocking;
mod migrate;
mod postgres;
mod row;

pub use blob::{BlobError, BlobFolder, GuardedBlobs};
pub use blocking::Blocking;
pub use postgres::{ConnectError, PostgresStore};
