//! Reads the histories of several processes as one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use resource::audit::{History, HistoryError, Nanos};

/// Why a file can't be read as a history.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It could not be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It is not a history.
    #[error("{}: {source}", .path.display())]
    History {
        /// The file.
        path: PathBuf,
        /// The line and its error.
        source: HistoryError,
    },
}

/// Merges the events of all files in the order of their times, which count from the first event.
///
/// An incomplete last line, as a killed process leaves it, is ignored.
///
/// # Errors
///
/// [`ReadError`] names the file and the line.
pub fn read(paths: &[impl AsRef<Path>]) -> Result<History, ReadError> {
    let mut whole = History::default();
    for path in paths {
        whole.events.extend(read_one(path.as_ref())?.events);
    }
    // A stable sort, so that the events of one process keep their order.
    whole.events.sort_by_key(|event| event.at);
    let first = whole.events.first().map_or(0, |event| event.at.0);
    for event in &mut whole.events {
        event.at = Nanos(event.at.0 - first);
    }
    Ok(whole)
}

fn read_one(path: &Path) -> Result<History, ReadError> {
    let text = fs::read(path).map_err(|source| ReadError::File { path: path.to_owned(), source })?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    History::parse_json_lines(&text[..whole])
        .map_err(|source| ReadError::History { path: path.to_owned(), source })
}
