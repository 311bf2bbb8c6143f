//! Long searches on many machines: each searches its [shard](Shard) of the seeds and keeps what it finds in
//! a folder of its own, a [summary](Summary) and [capsules](Capsule); [`merge`](merge()) makes one report of
//! all folders.
//!
//! Every file is written under another name first and then renamed, so it is never half written, and a search
//! that is killed loses nothing that it had found.

mod capsule;
mod capsules;
mod files;
mod merge;
mod shard;
mod summary;

pub use capsule::{Capsule, Origin};
pub use capsules::{Capsules, KEPT_MAX};
pub use files::FleetError;
pub use merge::{Found, Merged, PROBED_MIN, merge};
pub use shard::{BLOCK, Shard, ShardError};
pub use summary::{Canary, Summary};
