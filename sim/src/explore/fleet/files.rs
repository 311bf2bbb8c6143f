//! Files that are written whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A file or folder of a search that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// It can't be read or written.
    #[error("{path}: {source}; choose another folder", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It is not what a search writes.
    #[error("{path}: {problem}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem with its text.
        problem: String,
    },
    /// The folders do not belong together.
    #[error("{0}")]
    Merge(String),
}

impl FleetError {
    /// Returns a function that adds the path to an error.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<'_> {
        move |source| Self::File { path: path.to_owned(), source }
    }
}

/// Writes a file whole or not at all. Its folder exists.
pub(super) fn write(path: &Path, text: &str) -> Result<(), FleetError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    std::fs::write(&draft, text).map_err(FleetError::at(&draft))?;
    std::fs::rename(&draft, path).map_err(FleetError::at(path))
}

/// Writes a value as JSON, whole or not at all.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), FleetError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| FleetError::at(path)(error.into()))?;
    write(path, &(text + "\n"))
}

/// Reads a value that [`write_json`] has written.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T, FleetError> {
    let text = std::fs::read_to_string(path).map_err(FleetError::at(path))?;
    serde_json::from_str(&text).map_err(|error| FleetError::Content {
        path: path.to_owned(),
        problem: format!("it is no {what} of this version: {error}"),
    })
}
