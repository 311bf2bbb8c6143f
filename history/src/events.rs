//! A history: the events of one run, in the order of true time.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use crate::time::Span;
use crate::vocabulary::{Kind, Name, Record, RecordError};
use serde::{Deserialize, Serialize};

/// True time: nanoseconds since the run began, on a clock that no process can read (on live servers, the
/// clock of the recording machine). Displayed as seconds with three digits.
///
/// # Example
///
/// ```
/// use history::Nanos;
/// use std::time::Duration;
///
/// let granted_at = Nanos(7_000_000);
/// assert_eq!(granted_at.after(Duration::from_secs(2)).to_string(), "2.007");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Returns the time `duration` later; the end of time if there is no such time.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(Span(duration).as_nanos()))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0 / 1_000_000;
        write!(f, "{}.{:03}", millis / 1000, millis % 1000)
    }
}

/// One event of a history.
///
/// # Example
///
/// ```
/// use history::{Event, Kind, Name, Nanos};
///
/// let kind = Kind::ProcessCrashed { detail: None };
/// let event = Event { at: Nanos(1_500_000_000), process: Name::from("redis"), kind };
/// assert_eq!(event.kind.name().as_str(), "process_crashed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The true time of the event.
    pub at: Nanos,
    /// The process that it happened in.
    pub process: Name,
    /// The event with its fields.
    pub kind: Kind,
}

/// The events of one run, in the order in which they happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The events. The audit takes their order as given; equal times are no mistake.
    pub events: Vec<Event>,
}

/// A log that can't be read as a history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The log could not be read.
    #[error("line {line}: {source}")]
    Read {
        /// The number of the line, from one.
        line: usize,
        /// The error of the reader.
        source: io::Error,
    },
    /// A line is no JSON object with `at`, `process` and `event`.
    #[error("line {line}: {source}")]
    Json {
        /// The number of the line, from one.
        line: usize,
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// A line is no event of the vocabulary.
    #[error("line {line}: {source}")]
    Record {
        /// The number of the line, from one.
        line: usize,
        /// The reason why it is no event.
        source: RecordError,
    },
    /// A line is earlier than the one before it.
    #[error(
        "line {line}: its time {} ns is before {} ns, that of the line before it: sort the log by `at`",
        .at.0, .before.0
    )]
    Unordered {
        /// The number of the line, from one.
        line: usize,
        /// Its time.
        at: Nanos,
        /// The time of the line before.
        before: Nanos,
    },
}

/// One line of a log: `{"at":17,"process":"a","event":"lease_requested","resource_id_hash":"…",…}`.
#[derive(Serialize, Deserialize)]
struct Line {
    at: Nanos,
    process: Name,
    #[serde(flatten)]
    record: Record,
}

impl Event {
    /// Writes the event as one line of JSON, with its end of line.
    ///
    /// # Errors
    ///
    /// The errors of `writer`.
    ///
    /// # Example
    ///
    /// ```
    /// use history::{Event, Kind, Name, Nanos};
    ///
    /// let kind = Kind::PointPassed { step: Name::from("moving money") };
    /// let mut log = Vec::new();
    /// Event { at: Nanos(17), process: Name::from("a"), kind }.write_json(&mut log)?;
    /// let line = r#"{"at":17,"process":"a","event":"point_passed","step":"moving money"}"#;
    /// assert_eq!(String::from_utf8_lossy(&log).trim_end(), line);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write_json(&self, mut writer: impl Write) -> io::Result<()> {
        let line = Line { at: self.at, process: self.process.clone(), record: self.kind.to_record() };
        serde_json::to_writer(&mut writer, &line)?;
        writer.write_all(b"\n")
    }
}

impl History {
    /// Reads a log with one event in each line. Empty lines and fields outside the vocabulary are skipped.
    ///
    /// # Errors
    ///
    /// [`HistoryError`] with the number of the first line that is not an event, or that goes back in time.
    ///
    /// # Example
    ///
    /// ```
    /// use history::{History, Kind};
    ///
    /// let log = r#"
    /// {"at":0,"process":"a","event":"lease_requested","resource_id_hash":"6b6e","owner_token_prefix":"a:7f"}
    /// {"at":7000000,"process":"redis","event":"server_stopped","detail":"out of memory"}
    /// "#;
    /// let history = History::parse_json_lines(log.as_bytes())?;
    /// assert_eq!(history.events.len(), 2);
    /// assert!(matches!(history.events[1].kind, Kind::ServerStopped { .. }));
    /// # Ok::<(), history::HistoryError>(())
    /// ```
    pub fn parse_json_lines(reader: impl BufRead) -> Result<Self, HistoryError> {
        let mut history = Self::default();
        for (index, text) in reader.lines().enumerate() {
            let line = index + 1;
            let text = text.map_err(|source| HistoryError::Read { line, source })?;
            if !text.trim().is_empty() {
                history.push(parse_line(&text, line)?, line)?;
            }
        }
        Ok(history)
    }

    fn push(&mut self, event: Event, line: usize) -> Result<(), HistoryError> {
        match self.events.last() {
            Some(last) if last.at > event.at => {
                Err(HistoryError::Unordered { line, at: event.at, before: last.at })
            }
            _ => {
                self.events.push(event);
                Ok(())
            }
        }
    }
}

fn parse_line(text: &str, line: usize) -> Result<Event, HistoryError> {
    let Line { at, process, record } =
        serde_json::from_str(text).map_err(|source| HistoryError::Json { line, source })?;
    let kind = Kind::try_from(record).map_err(|source| HistoryError::Record { line, source })?;
    Ok(Event { at, process, kind })
}
