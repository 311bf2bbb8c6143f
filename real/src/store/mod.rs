//! Stores for the live resource: the library's stores on threads that may block, PostgreSQL, a bucket of S3,
//! and blobs guarded by a store.

mod admin;
mod apart;
mod blob;
mod blocking;
mod bucket;
mod migrate;
mod permits;
mod postgres;
mod row;

pub use apart::Apart;
pub use blob::{BlobError, BlobFolder, GuardedBlobs};
pub use blocking::Blocking;
pub use bucket::{Bucket, BucketError};
pub use postgres::{ConnectError, PostgresStore};
