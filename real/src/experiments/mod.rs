//! The lab's experiments on live servers, one file each. Each starts its own servers, runs this very program as the
//! processes that the experiment is about, judges their histories, and keeps the raw results as JSON.
//!
//! To read it: [`Experiment`] is what one is (`frame`), `registry` has them all by number, `configuration` reads their
//! files in `real/experiments/`. Then the experiments, each a file: [`pause_outlives_ttl`] (1),
//! [`redlock_partition`] (2), [`safe_release`] (3), [`contention`] (4), [`fairness`] (5),
//! [`ttl_sweep`] (6), [`ten_million`] (7), [`renewal`] (8), [`sim_and_live`] (9). What they share is in
//! [`lab`](crate::lab), and `page` makes the Markdown page of all.

mod configuration;
pub mod contention;
mod error;
pub mod fairness;
mod frame;
mod page;
pub mod pause_outlives_ttl;
pub mod redlock_partition;
mod registry;
pub mod renewal;
pub mod safe_release;
pub mod sim_and_live;
pub mod ten_million;
pub mod ttl_sweep;

pub use configuration::Settings;
pub use error::ExperimentError;
pub use frame::{Experiment, Registered, Run};
pub use page::{Page, PageError};
pub use registry::{ALL, find};
