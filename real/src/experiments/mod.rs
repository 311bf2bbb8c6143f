//! The lab's experiments on live servers, one file each. Each starts its own servers, runs this very program as the
//! processes that the experiment is about, judges their histories, and keeps the raw results as JSON.
//!
//! To read it: [`Experiment`] is what one is (`frame`), `registry` has them all by number, `configuration` reads their
//! files in `real/experiments/`. Then the experiments, each a file: [`pause_outlives_ttl`] (1),
//! [`redlock_partition`] (2), [`safe_release`] (3), [`contention`] (4), [`fairness`] (5),
//! [`ttl_sweep`] (6), [`ten_million`] (7), [`renewal`] (8), [`sim_and_live`] (9). What they share: `actors`
//! (this program as workers and resources), `fleet` (the lock servers), `load` (an open load on them), `network` (their
//! links), `parallel` (several runs at a time), `outcome` (what a run came to), `histories` (kept for who wants them),
//! `story` (a history for people), `statistics`, `machine` (what it was measured on).

pub(crate) mod actors;
mod configuration;
pub mod contention;
mod error;
pub mod fairness;
mod fleet;
mod frame;
mod histories;
mod load;
mod machine;
mod network;
mod outcome;
mod parallel;
pub mod pause_outlives_ttl;
pub mod redlock_partition;
mod registry;
pub mod renewal;
pub mod safe_release;
pub mod sim_and_live;
mod statistics;
mod story;
pub mod ten_million;
pub mod ttl_sweep;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use configuration::Settings;
pub use error::ExperimentError;
pub use frame::{Chapter, Experiment, Registered, Run};
pub use histories::keep_histories;
pub use machine::Machine;
pub use registry::{ALL, find};

/// Whether the resource refuses stale tokens: the two arms of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fence {
    /// The unsafe baseline: every write is taken.
    Off,
    /// Stale tokens are refused.
    On,
}

impl Fence {
    /// Before and after.
    pub const BOTH: [Self; 2] = [Self::Off, Self::On];

    /// As the flag `--fence` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }
}

/// Keeps results in a file, as JSON.
///
/// # Errors
///
/// [`ExperimentError::File`].
pub fn keep(results: &impl Serialize, path: &Path) -> Result<(), ExperimentError> {
    let text = serde_json::to_string_pretty(results).map_err(|error| failed(path)(error.into()))?;
    keep_text(&(text + "\n"), path)
}

/// Keeps a text in a file, whose folder is made if need be.
///
/// # Errors
///
/// [`ExperimentError::File`].
pub fn keep_text(text: &str, path: &Path) -> Result<(), ExperimentError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed(path))?;
    }
    std::fs::write(path, text).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> ExperimentError {
    |source| ExperimentError::File { path: path.to_owned(), source, help: "give --out another place" }
}
