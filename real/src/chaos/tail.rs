//! Reads the lines that a running process appends to its history.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The end of a growing file.
pub(super) struct Tail {
    path: PathBuf,
    read_bytes: u64,
    /// The incomplete line at the end of the last read.
    rest: String,
}

impl Tail {
    /// Follows the file at `path` from its current end. The file need not exist yet.
    pub(super) fn of(path: &Path) -> Self {
        let read_bytes = path.metadata().map_or(0, |file| file.len());
        Self { path: path.to_owned(), read_bytes, rest: String::new() }
    }

    /// Returns whether a line appended since the last call contains `text`.
    pub(super) fn contains(&mut self, text: &str) -> bool {
        let mut added = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read_bytes))?;
            file.read_to_end(&mut added)
        });
        // A file that does not exist yet has no lines.
        self.read_bytes += u64::try_from(read.unwrap_or(0)).unwrap_or(0);
        self.rest.push_str(&String::from_utf8_lossy(&added));
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let found = self.rest[..whole].lines().any(|line| line.contains(text));
        self.rest.drain(..whole);
        found
    }
}
