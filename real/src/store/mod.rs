//! Stores for the live resource: the library's on threads that may block, PostgreSQL, and blobs behind a
//! store.

mod blob;
mod blocking;
mod migrate;
mod postgres;
mod row;

pub use blob::{BlobError, BlobFolder, GuardedBlobs};
pub use blocking::Blocking;
pub use postgres::{ConnectError, PostgresStore};
