//! Stores for the live resource: those of the library kept off the threads that serve, PostgreSQL, and blobs behind it.

mod blob;
mod blocking;
mod migrate;
mod postgres;
mod row;

pub use blob::{BlobError, BlobFolder, GuardedBlobs};
pub use blocking::Blocking;
pub use postgres::{ConnectError, PostgresStore};
