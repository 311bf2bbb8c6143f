//! Long searches on many machines. Each searches its [shard](Shard) of the seeds and keeps its findings in a
//! folder of its own: a [summary](Summary) and [capsules](Capsule). [`merge`](merge()) makes one report of
//! all folders.
//!
//! Every file appears whole or not at all ([`files::write()`]), so a search that is killed loses none of its
//! findings. Searches in one folder do not replace each other's capsules.

mod capsule;
mod capsules;
mod json;
mod merge;
mod shard;
mod summary;

pub use capsule::{Capsule, Origin};
pub use capsules::{Capsules, KEPT_MAX};
pub use json::FleetError;
pub use merge::{Found, Merged, PROBED_MIN, merge};
pub use shard::{BLOCK, Shard, ShardError};
pub use summary::{Canary, Summary};
