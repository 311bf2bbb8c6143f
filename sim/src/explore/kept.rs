//! The failing schedules that a search keeps in a folder: `NAME.toml`, `NAME-2.toml` and so on.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The extension of a schedule file.
const EXTENSION: &str = "toml";

/// Returns an error for the name of a search whose files another search takes for its own, such as `NAME-2`.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    match name.rsplit_once('-') {
        Some((other, digits)) if further(digits).is_some() => Err(format!(
            "{name}: a search called `{other}` keeps a further schedule in {name}.{EXTENSION}, and would \
             replay those of this one. Choose a name that does not end in a hyphen and a number, such as \
             {other}_{digits}"
        )),
        _ => Ok(()),
    }
}

/// Returns the kept schedules of the search `name`, in the order of their numbers; none if there is no such
/// folder. An error if the folder can't be read: a search that replays none of its schedules proves nothing.
pub(super) fn to_replay(folder: &Path, name: &str) -> Result<Vec<PathBuf>, String> {
    kept(folder, name).map_err(|error| {
        format!(
            "{name}: can't read the kept schedules in {}: {error}; make the folder readable, or name another \
             one (keep_in)",
            folder.display()
        )
    })
}

fn kept(folder: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // A file in its place holds no schedule either. It matters once a schedule is to be kept.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut kept = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        if let Some(number) = number(&path, name) {
            kept.insert(number, path);
        }
    }
    Ok(kept.into_values().collect())
}

/// Returns the number of a kept schedule of the search `name`, from 1.
fn number(path: &Path, name: &str) -> Option<u32> {
    if path.extension()? != EXTENSION {
        return None;
    }
    match path.file_stem()?.to_str()?.strip_prefix(name)? {
        "" => Some(1),
        suffix => further(suffix.strip_prefix('-')?),
    }
}

/// Returns the number of a further schedule, from 2.
fn further(digits: &str) -> Option<u32> {
    digits.parse().ok().filter(|number| *number > 1)
}

/// A schedule that is kept in a file.
#[derive(Debug)]
pub(super) struct Kept {
    folder: PathBuf,
    name: String,
    path: PathBuf,
    /// True if this search has written the file.
    is_own: bool,
}

impl Kept {
    /// Keeps a schedule in a file of its own, unless a file holds it already. Other schedules stay, even
    /// those of another search in the same folder.
    pub(super) fn new(folder: &Path, name: &str, schedule: &str) -> Result<Self, files::Error> {
        let known = kept(folder, name).map_err(files::Error::at(folder))?;
        let path = files::keep(folder, name, EXTENSION, schedule)?;
        Ok(Self { folder: folder.to_owned(), name: name.to_owned(), is_own: !known.contains(&path), path })
    }

    /// Returns the file.
    fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a smaller schedule instead. Deletes the schedule's own file if another file holds the smaller
    /// one already.
    fn replace(self, schedule: &str) -> Result<Self, files::Error> {
        let holds = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|kept| kept == schedule);
        let known = kept(&self.folder, &self.name).map_err(files::Error::at(&self.folder))?;
        if let Some(path) = known.into_iter().find(holds) {
            if self.is_own && path != self.path {
                // Ignored: a schedule that is kept twice does no harm.
                let _ = fs::remove_file(&self.path);
            }
            return Ok(Self { path, ..self });
        }
        if !self.is_own {
            return Self::new(&self.folder, &self.name, schedule);
        }
        files::write(&self.path, schedule)?;
        Ok(self)
    }
}

/// Keeps the shrunk schedule in place of the drawn one. Returns a line with its file, or with the reason why
/// it is not kept.
pub(super) fn where_kept(drawn: Result<Kept, files::Error>, schedule: &str) -> String {
    let drawn = match drawn {
        Ok(drawn) => drawn,
        Err(error) => return format!("NOT KEPT: save the schedule above. {error} (keep_in)"),
    };
    let path = drawn.path().display().to_string();
    match drawn.replace(schedule) {
        Ok(kept) => format!("kept in {}, which is replayed first from now on", kept.path().display()),
        Err(error) => format!("kept as it was drawn in {path}. NOT KEPT: the schedule above. {error}"),
    }
}
