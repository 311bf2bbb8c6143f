//! The times of a file.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The times that [`File::set_times`](super::File::set_times) sets.
#[derive(Debug, Clone, Default)]
#[must_use = "must be applied to a file via `File::set_times` to have any effect"]
pub struct FileTimes {
    accessed: Option<SystemTime>,
    modified: Option<SystemTime>,
}

impl FileTimes {
    /// Returns no times.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time of the last reading.
    pub fn set_accessed(mut self, t: SystemTime) -> Self {
        self.accessed = Some(t);
        self
    }

    /// Sets the time of the last change.
    pub fn set_modified(mut self, t: SystemTime) -> Self {
        self.modified = Some(t);
        self
    }

    /// Returns the times since the Unix epoch.
    ///
    /// # Errors
    ///
    /// If one is before it.
    pub(super) fn since_epoch(&self) -> io::Result<(Option<Duration>, Option<Duration>)> {
        let since = |time: Option<SystemTime>| {
            let since = time.map(|time| time.duration_since(UNIX_EPOCH)).transpose();
            since.map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a time before the Unix epoch"))
        };
        Ok((since(self.accessed)?, since(self.modified)?))
    }
}
