//! The files that commands write.

use std::path::Path;

use files::{Error, Parents};
use serde::Serialize;

use super::LabError;

/// Checks before the work that results can be written to a file, whose folder is created if needed, and that
/// the file is none of `inputs`.
///
/// # Errors
///
/// [`LabError::Output`].
pub fn try_keep(path: &Path, inputs: &[&Path]) -> Result<(), LabError> {
    Ok(files::try_outputs(&[path], inputs, Parents::Created)?)
}

/// Writes results to a file, as JSON, whole or not at all.
///
/// # Errors
///
/// [`LabError::Output`].
pub fn keep(results: &impl Serialize, path: &Path) -> Result<(), LabError> {
    let text = serde_json::to_string_pretty(results).map_err(|error| Error::at(path)(error.into()))?;
    keep_text(&(text + "\n"), path)
}

/// Writes a text to a file, whole or not at all, creating its folder if needed.
///
/// # Errors
///
/// [`LabError::Output`].
pub fn keep_text(text: &str, path: &Path) -> Result<(), LabError> {
    if let Some(folder) = path.parent() {
        files::create_folder(folder)?;
    }
    Ok(files::write(path, text)?)
}
