//! The capsules in a folder: at most a few of each cause.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::capsule::{Capsule, read};
use super::json::FleetError;
use super::summary::SUMMARY;

/// The most capsules of one cause that are kept: those with the fewest faults, then those with the lowest
/// seeds.
pub const KEPT_MAX: usize = 4;

/// The capsules that a search keeps in a folder, at most [`KEPT_MAX`] of each cause.
#[derive(Debug)]
pub struct Capsules {
    folder: PathBuf,
    kept: BTreeMap<String, Vec<Capsule>>,
    /// The names of their files, by the names with which they were added.
    names: BTreeMap<String, String>,
}

impl Capsules {
    /// Keeps capsules in the folder, which is created with the first one. Files of other searches stay: a new
    /// capsule gets another name if they have its own.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), kept: BTreeMap::new(), names: BTreeMap::new() }
    }

    /// Returns true if a capsule of this cause with this number of faults would be kept.
    pub fn would_keep(&self, cause: &str, faults: usize, seed: u64) -> bool {
        let kept = self.kept.get(cause).map_or(&[][..], Vec::as_slice);
        kept.len() < KEPT_MAX || kept.last().is_some_and(|worst| (faults, seed) < worst.rank())
    }

    /// Keeps a capsule and saves it. If there are too many of its cause, removes the longest; does nothing if
    /// that is this one. A capsule replaces an earlier one that was added with the same name.
    ///
    /// # Errors
    ///
    /// [`FleetError::Write`] if a file can't be written. The capsule is still kept in memory.
    pub fn add(&mut self, mut capsule: Capsule) -> Result<(), FleetError> {
        let (name, cause) = (capsule.name.clone(), capsule.cause.clone());
        let of_cause = self.kept.entry(cause).or_default();
        of_cause.retain(|known| !known.is_of(&capsule));
        if of_cause.len() >= KEPT_MAX && of_cause.last().is_some_and(|worst| worst.rank() <= capsule.rank()) {
            return Ok(());
        }
        let saved = match self.names.get(&name) {
            Some(own) => {
                capsule.name.clone_from(own);
                capsule.save(&self.folder)
            }
            None => capsule.save_beside(&self.folder),
        };
        if saved.is_ok() {
            self.names.insert(name, capsule.name.clone());
        }
        of_cause.push(capsule);
        of_cause.sort_by_key(Capsule::rank);
        for worst in of_cause.drain(KEPT_MAX.min(of_cause.len())..) {
            let before = self.names.len();
            self.names.retain(|_, own| *own != worst.name);
            // A capsule that was not saved has no name here: files of that name would belong to another
            // search.
            if self.names.len() < before {
                worst.remove(&self.folder);
            }
        }
        saved
    }

    /// Returns all capsules, the best of each cause first.
    pub fn iter(&self) -> impl Iterator<Item = &Capsule> {
        self.kept.values().flatten()
    }

    /// Returns the path of a capsule's schedule.
    pub fn path(&self, capsule: &Capsule) -> PathBuf {
        self.folder.join(format!("{}.toml", capsule.name))
    }

    /// Reads all capsules in a folder, in the order of their names.
    ///
    /// # Errors
    ///
    /// [`FleetError`] if a file can't be read, or is no capsule.
    pub fn read(folder: &Path) -> Result<Vec<Capsule>, FleetError> {
        Self::read_each(folder)?.into_iter().collect()
    }

    /// Reads all capsules in a folder, in the order of their names, with an error for each that is damaged.
    ///
    /// # Errors
    ///
    /// [`FleetError::Read`] if the folder can't be read.
    pub fn read_each(folder: &Path) -> Result<Vec<Result<Capsule, FleetError>>, FleetError> {
        let entries = std::fs::read_dir(folder).map_err(FleetError::at(folder))?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(FleetError::at(folder))?;
        paths.retain(|path| {
            path.extension() == Some(OsStr::new("json")) && path.file_name() != Some(OsStr::new(SUMMARY))
        });
        paths.sort();
        Ok(paths.iter().map(|path| read(path)).collect())
    }
}
