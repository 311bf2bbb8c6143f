//! Reads the histories of several processes as one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use history::{Event, History, HistoryError, Nanos};

/// Why files can't be read as one history.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file could not be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file is not a history.
    #[error("{}: {source}", .path.display())]
    History {
        /// The file.
        path: PathBuf,
        /// The line and its error.
        source: HistoryError,
    },
    /// Two files have the same event, which happened once.
    #[error("{} and {} have the same events: leave one out", .one.display(), .other.display())]
    Twice {
        /// The file that was given first.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
}

/// The histories of several files as one.
#[derive(Debug, Default)]
pub struct Merged {
    /// The events of all files in the order of their times, which count from the first event.
    pub history: History,
    /// The files without an event.
    pub empty: Vec<PathBuf>,
    /// The files that end within a line, as a killed process leaves them: what it was to say is missing.
    pub torn: Vec<PathBuf>,
}

/// Merges the events of all files in the order of their times, which count from the first event.
///
/// An incomplete last line, as a killed process leaves it, is ignored.
///
/// # Errors
///
/// [`ReadError`] names the file and the line.
pub fn read(paths: &[impl AsRef<Path>]) -> Result<History, ReadError> {
    Ok(merge(paths)?.history)
}

/// Merges the events of all files as [`read`] does, and also returns what is wrong with the files.
///
/// # Errors
///
/// As [`read`].
pub fn merge(paths: &[impl AsRef<Path>]) -> Result<Merged, ReadError> {
    let mut merged = Merged::default();
    // Each event with the number of its file.
    let mut events: Vec<(usize, Event)> = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let path = path.as_ref();
        let (history, is_torn) = read_one(path)?;
        if history.events.is_empty() {
            merged.empty.push(path.to_owned());
        }
        if is_torn {
            merged.torn.push(path.to_owned());
        }
        events.extend(history.events.into_iter().map(|event| (number, event)));
    }
    // A stable sort, so that the events of one process keep their order.
    events.sort_by_key(|(_, event)| event.at);
    if let Some((one, other)) = twice(&events) {
        let path = |number: usize| paths[number].as_ref().to_owned();
        return Err(ReadError::Twice { one: path(one), other: path(other) });
    }
    let first = events.first().map_or(0, |(_, event)| event.at.0);
    let since = |event: Event| Event { at: Nanos(event.at.0 - first), ..event };
    merged.history.events = events.into_iter().map(|(_, event)| since(event)).collect();
    Ok(merged)
}

/// Returns two files that have an event in common. No event happens twice at the same time in one process.
fn twice(events: &[(usize, Event)]) -> Option<(usize, usize)> {
    let simultaneous = events.chunk_by(|(_, one), (_, other)| one.at == other.at);
    simultaneous.filter(|events| events.len() > 1).find_map(|events| {
        let pairs = events
            .iter()
            .enumerate()
            .flat_map(|(place, one)| events[..place].iter().map(move |other| (other, one)));
        let mut same = pairs.filter(|(one, other)| one.0 != other.0 && one.1 == other.1);
        same.next().map(|(one, other)| (one.0.min(other.0), one.0.max(other.0)))
    })
}

/// Reads one file. Returns true if its last line is incomplete.
fn read_one(path: &Path) -> Result<(History, bool), ReadError> {
    let text = fs::read(path).map_err(|source| ReadError::File { path: path.to_owned(), source })?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let failed = |source| ReadError::History { path: path.to_owned(), source };
    // A last line that is an event lacks nothing but its line feed.
    let last = &text[whole..];
    if !last.is_empty() && History::parse_json_lines(last).is_ok() {
        return Ok((History::parse_json_lines(&text[..]).map_err(failed)?, false));
    }
    let history = History::parse_json_lines(&text[..whole]).map_err(failed)?;
    Ok((history, !last.is_empty()))
}
