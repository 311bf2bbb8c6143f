//! Notes of a run that its history does not hold: the names of its sections, the hosts that were looked up,
//! and the commands that servers refused as unknown. A search tells by them whether it has checked anything.

use std::collections::{BTreeMap, BTreeSet};

use super::process::ProcessId;
use super::{World, lock};

/// The notes of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exercise {
    /// The names of the locks under which processes entered sections.
    pub(crate) sections: BTreeSet<String>,
    /// The hosts that processes looked up, each behind the name of the process.
    pub(crate) look_ups: BTreeSet<(String, String)>,
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

impl World {
    /// Notes that a process entered a section under the lock called `lock`.
    pub(crate) fn note_section(&self, lock_name: &str) {
        let mut exercise = lock(&self.0.exercise);
        if !exercise.sections.contains(lock_name) {
            exercise.sections.insert(lock_name.to_owned());
        }
    }

    /// Notes that the server refused `command` as unknown.
    pub(crate) fn note_unknown(&self, server: ProcessId, command: &str) {
        lock(&self.0.exercise).refuse(server, command);
    }

    /// Takes the notes so far.
    pub(crate) fn take_exercise(&self) -> Exercise {
        std::mem::take(&mut lock(&self.0.exercise))
    }
}
