//! Notes of a run that its history does not hold: the names of its sections, and the commands that servers
//! refused as unknown. A search tells by them whether it has checked anything.

use std::collections::{BTreeMap, BTreeSet};

use super::process::ProcessId;

/// The notes of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exercise {
    /// The names of the locks under which processes entered sections.
    pub(crate) sections: BTreeSet<String>,
    /// The number of refusals, by the server's process number and the command.
    unknown: BTreeMap<(usize, String), u64>,
}

impl Exercise {
    pub(super) fn refuse(&mut self, server: ProcessId, command: &str) {
        *self.unknown.entry((server.0, command.to_owned())).or_default() += 1;
    }

    /// Returns the commands that the server refused as unknown, and how often.
    pub(crate) fn unknown_to(&self, server: ProcessId) -> BTreeMap<String, u64> {
        let theirs = self.unknown.iter().filter(|((number, _), _)| *number == server.0);
        theirs.map(|((_, command), times)| (command.clone(), *times)).collect()
    }
}
