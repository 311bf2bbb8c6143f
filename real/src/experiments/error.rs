//! The errors of experiments and of reading their results.

use crate::lab::LabError;
use crate::recording::ReadError;
use crate::servers::ServerError;

/// Why an experiment could not be carried out. An unexpected result is not an error.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// No experiment has this number.
    #[error(
        "there is no experiment {number}: there are {}",
        .known.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
    )]
    Unknown {
        /// The number.
        number: u32,
        /// The numbers that exist.
        known: Vec<u32>,
    },
    /// The configuration is invalid; the error names the line.
    #[error("{name}: {source}")]
    Configuration {
        /// The file, or the flags.
        name: String,
        /// The line and the error.
        source: Box<toml::de::Error>,
    },
    /// With this configuration the experiment shows nothing.
    #[error("{0}")]
    Pointless(String),
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A part of the experiment failed.
    #[error("{0}")]
    Failed(String),
    /// The results don't fit the experiment, or no longer do.
    #[error("these results don't fit experiment {number}: {source}; run `real experiment {number}` again")]
    Results {
        /// The experiment.
        number: u32,
        /// The error.
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
