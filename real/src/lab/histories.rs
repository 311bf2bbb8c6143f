//! Keeps the histories of an experiment's runs in a folder, if one is given.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use files::{Draft, Error};
use history::History;

use super::LabError;

/// The folder, if any. It is global, since experiments receive nothing but their configuration.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Keeps the history of every later run in `folder`, which is created: for each run a file of JSON lines, as
/// `real audit` reads it, with the events of all processes in one order. Call it once, before the runs.
///
/// # Errors
///
/// [`LabError::Output`] if no file can be written there.
pub fn keep_histories(folder: &Path) -> Result<(), LabError> {
    files::create_folder(folder)?;
    files::try_folder(folder)?;
    FOLDER.get_or_init(|| folder.to_owned());
    Ok(())
}

/// Keeps the history of a run whose processes wrote these files. The run's name is the folder of the last
/// file.
pub(crate) fn keep(history: &History, files: &[impl AsRef<Path>]) -> Result<(), LabError> {
    let Some(folder) = FOLDER.get() else { return Ok(()) };
    let run = files.last().and_then(|file| file.as_ref().parent()?.file_name());
    let run = run.unwrap_or_default().to_string_lossy();
    write(folder, &run, history)?;
    Ok(())
}

/// Writes a new file, whole or not at all; runs of the same name are numbered.
fn write(folder: &Path, run: &str, history: &History) -> Result<PathBuf, Error> {
    let path = |number: u32| folder.join(format!("{run}-{number}.jsonl"));
    let first = path(1);
    let mut draft = Draft::begin(&first)?;
    let written = history.events.iter().try_for_each(|event| event.write_json(&mut draft));
    written.and_then(|()| draft.flush()).map_err(Error::at(&first))?;
    let mut number = 1;
    while let Some(again) = draft.commit_new(&path(number))? {
        (draft, number) = (again, number + 1);
    }
    Ok(path(number))
}
