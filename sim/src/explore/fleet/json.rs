//! The files of a search, as JSON, and their errors.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A file or folder of a search that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// It can't be written.
    #[error(transparent)]
    Write(#[from] files::Error),
    /// It can't be read.
    #[error("can't read {path}: {source}", path = path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It was not written by a search.
    #[error("{path}: {problem}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem with its text.
        problem: String,
    },
    /// The folders are not of one search.
    #[error("{0}")]
    Merge(String),
}

impl FleetError {
    /// Returns a function that adds the path to a read error.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<'_> {
        move |source| Self::Read { path: path.to_owned(), source }
    }
}

/// Returns a value as JSON, as [`read_json`] reads it.
pub(super) fn json(path: &Path, value: &impl Serialize) -> Result<String, FleetError> {
    let content = |error: serde_json::Error| FleetError::Content {
        path: path.to_owned(),
        problem: format!("it can't be written as JSON: {error}"),
    };
    Ok(serde_json::to_string_pretty(value).map_err(content)? + "\n")
}

/// Reads a value that [`json`] has returned.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T, FleetError> {
    let text = std::fs::read_to_string(path).map_err(FleetError::at(path))?;
    serde_json::from_str(&text).map_err(|error| FleetError::Content {
        path: path.to_owned(),
        problem: format!("it is damaged, or no {what} of this version: {error}"),
    })
}
