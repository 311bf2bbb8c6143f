//! The capsules in a folder: at most a few of each cause.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::capsule::Capsule;
use super::files::{FleetError, read_json};
use super::summary::SUMMARY;

/// The most capsules of one cause that are kept: those with the fewest faults, then those with the lowest
/// seeds.
pub const KEPT_MAX: usize = 4;

/// The capsules that a search keeps in a folder, at most [`KEPT_MAX`] of each cause.
#[derive(Debug)]
pub struct Capsules {
    folder: PathBuf,
    kept: BTreeMap<String, Vec<Capsule>>,
}

impl Capsules {
    /// Keeps capsules in the folder, which is created with the first one. Files of other searches stay,
    /// unless a new capsule has the same name.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), kept: BTreeMap::new() }
    }

    /// Returns whether a capsule of this cause with so many faults would be kept.
    pub fn would_keep(&self, cause: &str, faults: usize, seed: u64) -> bool {
        let kept = self.kept.get(cause).map_or(&[][..], Vec::as_slice);
        kept.len() < KEPT_MAX || kept.last().is_some_and(|worst| (faults, seed) < worst.rank())
    }

    /// Saves a capsule, and removes the longest of its cause if there are too many. Does nothing if the
    /// longest is this one. A capsule that has the name of another replaces it.
    ///
    /// # Errors
    ///
    /// [`FleetError::File`] if a file can't be written.
    pub fn add(&mut self, capsule: Capsule) -> Result<(), FleetError> {
        let kept = self.kept.entry(capsule.cause.clone()).or_default();
        kept.retain(|known| known.name != capsule.name);
        if kept.len() >= KEPT_MAX && kept.last().is_some_and(|worst| worst.rank() <= capsule.rank()) {
            return Ok(());
        }
        std::fs::create_dir_all(&self.folder).map_err(FleetError::at(&self.folder))?;
        capsule.save(&self.folder)?;
        kept.push(capsule);
        kept.sort_by_key(Capsule::rank);
        for worst in kept.drain(KEPT_MAX.min(kept.len())..) {
            for extension in ["json", "toml"] {
                let path = self.folder.join(format!("{}.{extension}", worst.name));
                std::fs::remove_file(&path).map_err(FleetError::at(&path))?;
            }
        }
        Ok(())
    }

    /// All capsules, the best of each cause first.
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
        let entries = std::fs::read_dir(folder).map_err(FleetError::at(folder))?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(FleetError::at(folder))?;
        paths.retain(|path| {
            path.extension() == Some(OsStr::new("json")) && path.file_name() != Some(OsStr::new(SUMMARY))
        });
        paths.sort();
        paths.iter().map(|path| read_json(path, "capsule")).collect()
    }
}
