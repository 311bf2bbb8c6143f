//! What can be wrong with a schedule file.

use std::io;

/// A schedule file that can't be used. Prints as `file:line: what is wrong`.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The file can't be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The file is no TOML, or not that of a schedule, or the schedule contradicts itself.
    #[error("{file}:{line}: {problem}")]
    Invalid {
        /// The file, or the name under which its text was given.
        file: String,
        /// The line of the value at fault, from 1.
        line: usize,
        /// What is wrong, and what to write instead where that is known.
        problem: String,
    },
}
