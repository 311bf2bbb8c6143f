//! The append-only file: what a server still knows after it was stopped.
//!
//! The file holds commands with absolute times, so the time for which a server is down counts for its keys. Scripts are
//! not in it: a restarted server answers NOSCRIPT, as Redis does.

use std::io;

use redb::StorageBackend;

use super::core::Core;
use super::replay::Replay;
use super::request::RequestParser;
use crate::world::disk::File;
use crate::world::machine::Machine;

/// What a server writes to its disk, and when (Redis' `appendonly` and `appendfsync`).
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

/// Effects on their way to the file.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// `None` if nothing is written.
    file: Option<File>,
    syncs_always: bool,
    unwritten: Vec<u8>,
    /// Bytes in the file may be lost with the machine.
    is_dirty: bool,
}

impl Journal {
    /// Opens the file on the machine's disk, if the policy writes one.
    pub(crate) fn open(persistence: Persistence, machine: &impl Machine) -> Self {
        let file = (persistence != Persistence::None).then(|| machine.disk().open());
        Self { file, syncs_always: persistence == Persistence::Always, ..Self::default() }
    }

    /// Takes in an encoded unit of effects.
    pub(crate) fn add(&mut self, unit: &[u8]) {
        if self.is_enabled() {
            self.unwritten.extend_from_slice(unit);
        }
    }

    /// Writes what has come in, and syncs it if the policy wants that. To be called before replies are sent.
    pub(crate) fn write(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        if let Some(file) = &self.file {
            dead_writes_nothing(file.append(&self.unwritten));
            if self.syncs_always {
                dead_writes_nothing(file.sync());
            } else {
                self.is_dirty = true;
            }
        }
        self.unwritten.clear();
    }

    /// Whether the file waits for its sync.
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty || (!self.unwritten.is_empty() && !self.syncs_always)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.file.is_some()
    }

    /// The sync that is due each second.
    pub(crate) fn sync(&mut self) {
        self.write();
        if let Some(file) = self.file.as_ref().filter(|_| std::mem::take(&mut self.is_dirty)) {
            dead_writes_nothing(file.sync());
        }
    }
}

/// Restores the keys from the file. What a crash cut off at its end is cut away.
pub(crate) fn load(core: &mut Core) {
    let Some(file) = core.journal.file.clone() else { return };
    let contents = file.contents().unwrap_or_default();
    let mut parser = RequestParser::default();
    let mut replay = Replay::default();
    let (mut read, mut applied) = (0, 0);
    while let Ok(Some(size)) = parser.parse(&contents[read..]) {
        replay.apply(core, parser.args(&contents[read..]));
        read += size;
        if replay.is_between_units() {
            applied = read;
        }
    }
    if applied < contents.len() {
        dead_writes_nothing(file.set_len(applied as u64));
    }
}

/// The file refuses the writes of a process that was killed, whose last task may still be under way.
fn dead_writes_nothing(_: io::Result<()>) {}
