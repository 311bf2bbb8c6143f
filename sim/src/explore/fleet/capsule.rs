//! A violation with all that is needed to show it again.

use std::path::Path;

use resource::audit::VerdictKind;
use serde::{Deserialize, Serialize};

use super::files::{FleetError, write, write_json};

/// Where a result comes from: the search, and the versions of all code in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The version of this crate.
    pub version: String,
    /// The trace hashes of a few fixed schedules: they change with the code of any lock, client, server or
    /// dependency that runs in them.
    pub behaviour: String,
    /// The system and the mistake that are searched.
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
    /// The trace hash of the shrunk schedule's run, in hexadecimal; `None` if the run has no end.
    pub trace_hash: Option<String>,
    /// The search that found it.
    pub search: Origin,
}

impl Capsule {
    /// Saves it in the folder, which exists.
    ///
    /// # Errors
    ///
    /// [`FleetError::File`] if a file can't be written.
    pub fn save(&self, folder: &Path) -> Result<(), FleetError> {
        write(&folder.join(format!("{}.toml", self.name)), &self.schedule)?;
        write_json(&folder.join(format!("{}.json", self.name)), self)
    }

    /// The order of preference among capsules of one cause: shorter ones first, then lower seeds.
    pub(super) fn rank(&self) -> (usize, u64) {
        (self.faults, self.seed)
    }
}
