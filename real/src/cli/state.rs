//! The state file that `up` writes and other commands read.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use files::Parents;
use serde::{Deserialize, Serialize};

/// The running servers.
#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    /// The folder of their processes, by which `down` finds them.
    pub(crate) directory: PathBuf,
    /// Their addresses, by system.
    pub(crate) servers: BTreeMap<String, Vec<String>>,
    /// Their process ids, by name.
    pub(crate) pids: BTreeMap<String, u32>,
}

impl State {
    /// Reads the file; `None` if it does not exist.
    pub(crate) fn load(file: Option<&Path>) -> Result<Option<Self>, Box<dyn Error>> {
        let path = path(file);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(elsewhere(&path, &error).into()),
        };
        let state = serde_json::from_slice(&text);
        state.map(Some).map_err(|error| format!("{}: {error}; remove the file", path.display()).into())
    }

    /// Writes the file, and returns its path.
    pub(crate) fn save(&self, file: Option<&Path>) -> Result<PathBuf, Box<dyn Error>> {
        let path = path(file);
        let text = serde_json::to_vec_pretty(self)?;
        files::write(&path, text)?;
        Ok(path)
    }

    /// Checks before the servers start that the file can be written.
    pub(crate) fn try_save(file: Option<&Path>) -> Result<(), files::Error> {
        files::try_outputs(&[&path(file)], &[], Parents::Exist)
    }

    pub(crate) fn remove(file: Option<&Path>) -> Result<(), Box<dyn Error>> {
        let path = path(file);
        fs::remove_file(&path).map_err(|error| elsewhere(&path, &error).into())
    }
}

fn elsewhere(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}; give a file that this user can write to --state", path.display())
}

/// Returns the path of the state file: by default one for each user.
fn path(file: Option<&Path>) -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    file.map_or_else(|| std::env::temp_dir().join(format!("dlock-real-{user}.json")), Path::to_owned)
}
