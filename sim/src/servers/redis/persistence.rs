//! The append-only file, from which a restarted server restores its keys.
//!
//! The file holds commands with absolute times, so keys also expire while the server is down. Scripts are not
//! in it: a restarted server answers NOSCRIPT, as Redis does.

use std::io;

use redb::StorageBackend;

use super::replay::Replay;
use super::request::RequestParser;
use super::state::State;
use crate::world::disk::File;
use crate::world::machine::Machine;

/// The policy for writing to and syncing the disk (Redis' `appendonly` and `appendfsync`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing: a restarted server is empty.
    #[default]
    None,
    /// Every effect, synced once a second: a loss of power loses up to a second.
    EverySecond,
    /// Every effect, synced before the reply is sent.
    Always,
}

/// The append-only file, and effects that are not written to it yet.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// `None` without persistence.
    file: Option<File>,
    syncs_always: bool,
    unwritten: Vec<u8>,
    /// The file has bytes that are not synced.
    is_dirty: bool,
}

impl Journal {
    /// Opens the file on the machine's disk, if the policy writes one.
    pub(crate) fn open(persistence: Persistence, machine: &impl Machine) -> Self {
        let file = (persistence != Persistence::None).then(|| machine.disk().open());
        Self { file, syncs_always: persistence == Persistence::Always, ..Self::default() }
    }

    /// Restores the keys from the file, and removes an incomplete command that a crash left at its end.
    pub(crate) fn restore(&self, state: &mut State) {
        let Some(file) = &self.file else { return };
        let contents = file.contents().unwrap_or_default();
        let mut parser = RequestParser::default();
        let mut replay = Replay::default();
        let (mut read, mut applied) = (0, 0);
        while let Ok(Some(size)) = parser.parse(&contents[read..]) {
            replay.apply(state, parser.args(&contents[read..]));
            read += size;
            if replay.is_between_units() {
                applied = read;
            }
        }
        if applied < contents.len() {
            ignore_if_dead(file.set_len(applied as u64));
        }
    }

    /// Adds the encoded effects of one command or script.
    pub(crate) fn add(&mut self, unit: &[u8]) {
        if self.is_enabled() {
            self.unwritten.extend_from_slice(unit);
        }
    }

    /// Writes the added effects, and syncs them under the policy `always`. Call this before replies are sent.
    pub(crate) fn write(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        if let Some(file) = &self.file {
            ignore_if_dead(file.append(&self.unwritten));
            if self.syncs_always {
                ignore_if_dead(file.sync());
            } else {
                self.is_dirty = true;
            }
        }
        self.unwritten.clear();
    }

    /// Returns true if a sync is due within a second.
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty || (!self.unwritten.is_empty() && !self.syncs_always)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.file.is_some()
    }

    /// Writes the added effects, and syncs the file if it is dirty.
    pub(crate) fn sync(&mut self) {
        self.write();
        if let Some(file) = self.file.as_ref().filter(|_| std::mem::take(&mut self.is_dirty)) {
            ignore_if_dead(file.sync());
        }
    }
}

/// Ignores an error: the file of a killed process fails, and its last running task may still write.
fn ignore_if_dead(_: io::Result<()>) {}
