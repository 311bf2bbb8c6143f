//! The files that commands write.

use std::path::Path;

use serde::Serialize;

use super::LabError;

/// Writes results to a file, as JSON.
///
/// # Errors
///
/// [`LabError::File`].
pub fn keep(results: &impl Serialize, path: &Path) -> Result<(), LabError> {
    let text = serde_json::to_string_pretty(results).map_err(|error| failed(path)(error.into()))?;
    keep_text(&(text + "\n"), path)
}

/// Writes a text to a file, creating its folder if needed.
///
/// # Errors
///
/// [`LabError::File`].
pub fn keep_text(text: &str, path: &Path) -> Result<(), LabError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed(path))?;
    }
    std::fs::write(path, text).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> LabError {
    |source| LabError::File { path: path.to_owned(), source, help: "give another path to --out" }
}
