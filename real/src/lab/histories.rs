//! Keeps the histories of an experiment's runs in a folder, if one is given.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use resource::audit::History;

use super::LabError;

/// The folder, if any. It is global, since experiments receive nothing but their configuration.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Keeps the history of every later run in `folder`, which is created: for each run a file of JSON lines, as
/// `real audit` reads it, with the events of all processes in one order. Call it once, before the runs.
///
/// # Errors
///
/// [`LabError::File`] if the folder can't be created.
pub fn keep_histories(folder: &Path) -> Result<(), LabError> {
    fs::create_dir_all(folder).map_err(failed(folder))?;
    FOLDER.get_or_init(|| folder.to_owned());
    Ok(())
}

/// Keeps the history of a run whose processes wrote these files. The run's name is the folder of the last
/// file.
pub(crate) fn keep(history: &History, files: &[impl AsRef<Path>]) -> Result<(), LabError> {
    let Some(folder) = FOLDER.get() else { return Ok(()) };
    let run = files.last().and_then(|file| file.as_ref().parent()?.file_name());
    let run = run.unwrap_or_default().to_string_lossy();
    let (mut file, path) = create(folder, &run)?;
    let written = history.events.iter().try_for_each(|event| event.write_json(&mut file));
    written.and_then(|()| file.flush()).map_err(failed(&path))
}

/// Creates a new file; runs of the same name are numbered.
fn create(folder: &Path, run: &str) -> Result<(BufWriter<File>, PathBuf), LabError> {
    let mut number = 1;
    loop {
        let path = folder.join(format!("{run}-{number}.jsonl"));
        match File::create_new(&path) {
            Ok(file) => return Ok((BufWriter::new(file), path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(failed(&path)(error)),
        }
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> LabError {
    |source| LabError::File { path: path.to_owned(), source, help: "give --histories another folder" }
}
