//! A violation with all that is needed to show it again.

use std::path::{Path, PathBuf};

use history::VerdictKind;
use serde::{Deserialize, Serialize};

use super::json::{FleetError, json, read_json};

/// The origin of a result: the search, and the versions of all code in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The version of this crate.
    pub version: String,
    /// The trace hashes of a few fixed schedules. They change with the code of any lock, client, server or
    /// dependency that runs in them.
    pub behaviour: String,
    /// The system and the mistake.
    pub subject: String,
    /// The strategies, as the command names them.
    pub strategy: String,
    /// The first seed of all shards.
    pub first: u64,
    /// The shard, such as `1/4`.
    pub shard: String,
}

/// A violation with all that is needed to show it again. It is saved as two files: `NAME.toml` is the shrunk
/// schedule, which replays, and `NAME.json` holds everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capsule {
    /// The name of its files, such as `seed-7-on`.
    pub name: String,
    /// The cause: failures with the same one are duplicates.
    pub cause: String,
    /// The arm of the run, such as `fenced`.
    pub arm: String,
    /// The verdicts that nothing explains.
    pub verdicts: Vec<VerdictKind>,
    /// The checks that did not hold, or the panic.
    pub findings: Vec<String>,
    /// The seed from which the schedule was drawn.
    pub seed: u64,
    /// The number of faults that are left in the shrunk schedule.
    pub faults: usize,
    /// The shrunk schedule.
    pub schedule: String,
    /// The schedule as it was drawn.
    pub drawn: String,
    /// The trace hash of the shrunk schedule's run, in hexadecimal; `None` if the run did not end.
    pub trace_hash: Option<String>,
    /// The search that found it.
    pub search: Origin,
}

impl Capsule {
    /// Saves it in the folder, which is created if need be, and replaces its own earlier files.
    ///
    /// # Errors
    ///
    /// [`FleetError::Write`] if a file can't be written.
    pub fn save(&self, folder: &Path) -> Result<(), FleetError> {
        let path = self.path(folder);
        let text = json(&path, self)?;
        files::create_folder(folder)?;
        // The file that holds everything comes first.
        files::write(&path, text)?;
        Ok(files::write(&path.with_extension("toml"), &self.schedule)?)
    }

    /// Saves it in the folder, which is created if need be. If its name belongs to another violation there,
    /// takes the first free name of `NAME-2`, `NAME-3` and so on.
    ///
    /// # Errors
    ///
    /// [`FleetError::Write`] if a file can't be written.
    pub fn save_beside(&mut self, folder: &Path) -> Result<(), FleetError> {
        files::create_folder(folder)?;
        let name = self.name.clone();
        let mut number = 1;
        while !self.claim(folder)? {
            number += 1;
            self.name = format!("{name}-{number}");
        }
        self.save(folder)
    }

    /// Returns true if its name is free in the folder, or belongs to this violation. Takes a free name in one
    /// step, so that two searches never both get it.
    fn claim(&self, folder: &Path) -> Result<bool, FleetError> {
        let path = self.path(folder);
        let schedule = path.with_extension("toml");
        if !path.exists() && schedule.exists() {
            return Ok(false);
        }
        if files::write_new(&path, json(&path, self)?)? {
            return Ok(true);
        }
        Ok(read(&path).is_ok_and(|there| there.is_of(self)))
    }

    pub(super) fn remove(&self, folder: &Path) {
        let path = self.path(folder);
        for path in [path.with_extension("toml"), path] {
            // Ignored: a schedule that stays beside shorter ones does no harm.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Returns true if both are of one violation: the same drawn schedule and the same cause.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        (self.seed, &self.drawn, &self.cause, &self.arm)
            == (other.seed, &other.drawn, &other.cause, &other.arm)
    }

    /// Returns the path of the file that holds everything.
    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.json", self.name))
    }

    /// Returns the rank among capsules of one cause: shorter ones first, then lower seeds.
    pub(super) fn rank(&self) -> (usize, u64) {
        (self.faults, self.seed)
    }
}

pub(super) fn read(path: &Path) -> Result<Capsule, FleetError> {
    read_json(path, "capsule")
}
