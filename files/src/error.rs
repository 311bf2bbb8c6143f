//! The reasons why a file can't be written.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The reason why a file can't be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refuses.
    #[error("can't write {}: {source}; {}", .path.display(), advice(.source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The output is an input, perhaps by another name.
    #[error(
        "can't write {}: it is the same file as the input {}, which would be lost; name another file",
        .path.display(),
        .input.display()
    )]
    Input {
        /// The output.
        path: PathBuf,
        /// The input.
        input: PathBuf,
    },
    /// Two outputs are one file.
    #[error(
        "can't write {} and {}: they are the same file; name two files",
        .path.display(),
        .other.display()
    )]
    Twice {
        /// The output.
        path: PathBuf,
        /// The other output.
        other: PathBuf,
    },
}

impl Error {
    /// Returns a function that adds the path to an error of the operating system.
    pub fn at(path: &Path) -> impl Fn(io::Error) -> Self + use<'_> {
        move |error| Self::Write { path: path.to_owned(), source: without_path(error) }
    }
}

/// Removes the path of the temporary file, which tempfile adds to its errors.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((text, _)) => io::Error::new(error.kind(), text),
        None => error,
    }
}

/// Says what to do about an error.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or choose a place on another disk"
        }
        ErrorKind::IsADirectory => "it is a folder: name a file",
        _ => "choose a place in a folder that exists and that this user can write to",
    }
}
