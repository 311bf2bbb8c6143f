//! The errors of runs on live servers.

use std::io;
use std::path::PathBuf;

use crate::recording::ReadError;
use crate::servers::ServerError;

/// Why a run could not be carried out. An unexpected result is not an error.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A server, or a process of this program, failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A history could not be read.
    #[error(transparent)]
    History(#[from] ReadError),
    /// A process did not complete a step in time.
    #[error("{name} did not {what} within {seconds} s; its last output:\n{words}")]
    Stuck {
        /// The process.
        name: String,
        /// The step.
        what: &'static str,
        /// The time waited.
        seconds: u64,
        /// The last lines of its log.
        words: String,
    },
    /// The resource did not answer.
    #[error("the resource did not answer: {0}")]
    Resource(io::Error),
    /// A part of the run failed.
    #[error("{0}")]
    Failed(String),
    /// The machine is too busy for results that a page shows.
    #[error(
        "the machine is busy: its load average is {load}, and results for a page need at most {most}; wait, or \
         measure for no page: `experiment` with --out, `peers` without --write"
    )]
    Busy {
        /// The load average of the last minute.
        load: f64,
        /// The highest that is accepted.
        most: f64,
    },
    /// An output could not be written.
    #[error(transparent)]
    Output(#[from] files::Error),
    /// A file could not be read or written.
    #[error("{}: {source}; {help}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
        /// The remedy.
        help: &'static str,
    },
}
