//! The files of the run's processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::chaos::ChaosError;
use crate::lab::actors::Actor;

/// The folder of the run's processes in the stage.
pub(super) const FOLDER: &str = "chaos";

/// Renames the history of a killed process, whose last line may be incomplete, and its log, so that its
/// successor starts new files. Returns the history's new path, if there was a history.
pub(super) fn put_away(actor: &Actor, number: usize) -> Result<Option<PathBuf>, ChaosError> {
    let put = |path: &Path| {
        let away = path.with_extension(number.to_string());
        match fs::rename(path, &away) {
            Ok(()) => Ok(Some(away)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ChaosError::Events(error)),
        }
    };
    put(actor.process.log())?;
    put(&actor.history)
}
