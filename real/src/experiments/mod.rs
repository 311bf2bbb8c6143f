//! The lab's experiments on live servers, one file each. Each starts its own servers, runs this very program as the
//! processes that the experiment is about, judges their histories, and keeps the raw results as JSON.

pub(crate) mod actors;
mod fleet;
mod machine;
pub mod pause_outlives_ttl;
mod story;

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::history::ReadError;
use crate::servers::ServerError;

pub use machine::Machine;

/// An experiment that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A server, or one of the experiment's own processes.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A history.
    #[error(transparent)]
    History(#[from] ReadError),
    /// A process did not do in time what it should.
    #[error("{name} did not {what} within {seconds} s; its last words:\n{words}")]
    Stuck {
        /// The process.
        name: String,
        /// What it should have done.
        what: &'static str,
        /// How long it was waited for.
        seconds: u64,
        /// The last lines of its log.
        words: String,
    },
    /// The resource gave no answer to a question.
    #[error("the resource did not answer: {0}")]
    Resource(io::Error),
    /// The results could not be kept.
    #[error("{}: {source}; give --out another place", .path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Keeps the results of an experiment in a file.
///
/// # Errors
///
/// [`ExperimentError::Results`].
pub fn keep(results: &impl Serialize, path: &Path) -> Result<(), ExperimentError> {
    let failed = |source| ExperimentError::Results { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut text = serde_json::to_vec_pretty(results).map_err(|error| failed(error.into()))?;
    text.push(b'\n');
    std::fs::write(path, text).map_err(failed)
}
