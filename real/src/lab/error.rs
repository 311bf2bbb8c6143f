//! Why a run on live servers could not be carried out.

use std::io;
use std::path::PathBuf;

use crate::history::ReadError;
use crate::servers::ServerError;

/// A run that could not be carried out. A result that was not expected is none.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A server, or one of our own processes.
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
    /// A part of a run failed in a way of its own.
    #[error("{0}")]
    Failed(String),
    /// A file could not be read or written.
    #[error("{}: {source}; {help}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
        /// What to do.
        help: &'static str,
    },
}
