//! The corpus: a folder of schedule files, each with the verdict that it must give.

use std::path::Path;

use sim::{Schedule, ScheduleError};

use crate::Options;
use crate::museum;

/// The reason why a folder can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The folder can't be read.
    #[error("{folder}: {source}; give the folder with the schedules, such as seeds")]
    Folder {
        /// The folder.
        folder: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The folder holds no schedule.
    #[error("{folder} holds no .toml file: give the folder with the schedules, such as seeds")]
    Empty {
        /// The folder.
        folder: String,
    },
    /// A schedule is not valid.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Loads the schedules in `folder`, each with its name, in alphabetical order.
///
/// # Errors
///
/// [`CorpusError`] for a folder without schedules, and for the first schedule that is not valid.
pub fn load(folder: &Path) -> Result<Vec<(String, Schedule<Options>)>, CorpusError> {
    let name = || folder.display().to_string();
    let unreadable = |source| CorpusError::Folder { folder: name(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(CorpusError::Empty { folder: name() });
    }
    let schedule = |path: &std::path::PathBuf| -> Result<_, CorpusError> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok((stem, museum::load(path)?))
    };
    files.iter().map(schedule).collect()
}
