//! Why an experiment could not be carried out, or its results not be read.

use std::io;
use std::path::PathBuf;

use crate::history::ReadError;
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
    /// A part of the experiment failed in a way of its own.
    #[error("{0}")]
    Failed(String),
    /// A file could not be read or written.
    #[error("{}: {source}; {help}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What to do.
        help: &'static str,
    },
    /// Results that are not (or no longer) those of the experiment.
    #[error("these are no results of experiment {number}: {source}; run `real experiment {number}` again")]
    Results {
        /// The experiment.
        number: u32,
        /// What is wrong.
        source: serde_json::Error,
    },
}
