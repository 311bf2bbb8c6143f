//! Why an experiment could not be carried out, or its results not be read.

use crate::history::ReadError;
use crate::lab::LabError;
use crate::servers::ServerError;

/// An experiment that could not be carried out. A result that was not expected is none.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// No experiment has the number.
    #[error("there is no experiment {number}: there are {}", .known.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The number.
        number: u32,
        /// Those that exist.
        known: Vec<u32>,
    },
    /// A configuration that can't be read, with the line.
    #[error("{name}: {source}")]
    Configuration {
        /// The file, or the flags.
        name: String,
        /// Where, and what is wrong.
        source: Box<toml::de::Error>,
    },
    /// A configuration with which the experiment shows nothing.
    #[error("{0}")]
    Pointless(String),
    /// What experiments share.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A part of the experiment failed in a way of its own.
    #[error("{0}")]
    Failed(String),
    /// Results that are not (or no longer) those of the experiment.
    #[error("these are no results of experiment {number}: {source}; run `real experiment {number}` again")]
    Results {
        /// The experiment.
        number: u32,
        /// What is wrong.
        source: serde_json::Error,
    },
}

impl From<ServerError> for ExperimentError {
    fn from(error: ServerError) -> Self {
        LabError::from(error).into()
    }
}

impl From<ReadError> for ExperimentError {
    fn from(error: ReadError) -> Self {
        LabError::from(error).into()
    }
}
