//! The failing schedules that a search keeps in a folder: `NAME.toml`, `NAME-2.toml` and so on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The extension of a schedule file.
const EXTENSION: &str = "toml";

/// Returns the kept schedules of the search `name`, in the order of their numbers. A folder that can't be
/// read has none.
pub(super) fn kept(folder: &Path, name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| Some((number(&entry.path(), name)?, entry.path())));
    numbered.collect::<BTreeMap<u32, PathBuf>>().into_values().collect()
}

/// Returns the number of a kept schedule of the search `name`, from 1.
fn number(path: &Path, name: &str) -> Option<u32> {
    if path.extension()? != EXTENSION {
        return None;
    }
    match path.file_stem()?.to_str()?.strip_prefix(name)? {
        "" => Some(1),
        suffix => suffix.strip_prefix('-')?.parse().ok().filter(|number| *number > 1),
    }
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
        let known = kept(folder, name);
        let path = files::keep(folder, name, EXTENSION, schedule)?;
        Ok(Self { folder: folder.to_owned(), name: name.to_owned(), is_own: !known.contains(&path), path })
    }

    /// Returns the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a smaller schedule instead. Deletes the schedule's own file if another file holds the smaller
    /// one already.
    pub(super) fn replace(self, schedule: &str) -> Result<Self, files::Error> {
        let holds = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|kept| kept == schedule);
        let known = kept(&self.folder, &self.name);
        if let Some(path) = known.into_iter().find(holds) {
            if self.is_own && path != self.path {
                // Ignored: a schedule that is kept twice does no harm.
                let _ = std::fs::remove_file(&self.path);
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
