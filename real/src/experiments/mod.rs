//! The lab's experiments on live servers, one file each. Each starts its own servers, runs this program as
//! the processes under test, judges their histories, and keeps the raw results as JSON.
//!
//! [`Experiment`] is the trait of all (`frame`), `registry` lists them by number, and `configuration` reads
//! their files in `real/experiments/`. The experiments are [`pause_outlives_ttl`] (1), [`redlock_partition`]
//! (2), [`safe_release`] (3), [`contention`] (4), [`fairness`] (5), [`ttl_sweep`] (6), [`ten_million`] (7),
//! [`renewal`] (8), [`sim_and_live`] (9), [`durability`] (10), [`crossing`] (11), [`skew`] (12) and [`storm`]
//! (13). They share [`lab`](crate::lab); `page` makes the Markdown pages, of which the first begins with the
//! lab's `objectives`, and the table of the guide that answers the lab's `questions`.

mod configuration;
pub mod contention;
pub mod crossing;
pub mod durability;
mod error;
pub mod fairness;
mod frame;
mod objectives;
mod page;
pub mod pause_outlives_ttl;
mod questions;
pub mod redlock_partition;
mod registry;
pub mod renewal;
pub mod safe_release;
pub mod sim_and_live;
pub mod skew;
pub mod storm;
pub mod ten_million;
pub mod ttl_sweep;

pub use configuration::Settings;
pub use error::ExperimentError;
pub use frame::{Experiment, Registered, Run};
pub use page::{Page, PageError};
pub use registry::{ALL, find};
