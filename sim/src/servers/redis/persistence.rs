//! The append-only file: what a server still knows after it was stopped.
//!
//! The file holds commands with absolute times, so the time for which a server is down counts for its keys. Scripts are
//! not in it: a restarted server answers NOSCRIPT, as Redis does.

use std::fmt;
use std::sync::Arc;

use super::core::Core;
use super::replay::Replay;
use super::request::RequestParser;

/// A file on the server's disk that is only ever appended to.
pub trait AppendFile: Send + Sync {
    /// Writes `bytes` at the end. They outlive the process, but not the machine, until [`AppendFile::sync`].
    fn append(&self, bytes: &[u8]);

    /// Makes all that was appended outlive the machine.
    fn sync(&self);

    /// All that is in the file.
    fn contents(&self) -> Vec<u8>;

    /// Cuts the file down to its first `bytes` bytes: a command that was cut off by a crash makes way for new ones.
    fn truncate(&self, bytes: usize);
}

/// What a server writes to its disk, and when (Redis' `appendonly` and `appendfsync`).
#[derive(Clone, Default)]
pub enum Persistence {
    /// Nothing: a restarted server is empty.
    #[default]
    None,
    /// Every effect, synced once a second: a crash of the machine loses up to a second.
    EverySecond(Arc<dyn AppendFile>),
    /// Every effect, synced before the reply is sent.
    Always(Arc<dyn AppendFile>),
}

/// Effects on their way to the file.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    persistence: Persistence,
    unwritten: Vec<u8>,
    /// Bytes in the file may be lost with the machine.
    is_dirty: bool,
}

impl Journal {
    pub(crate) fn new(persistence: Persistence) -> Self {
        Self { persistence, ..Self::default() }
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
        match &self.persistence {
            Persistence::None => {}
            Persistence::EverySecond(file) => {
                file.append(&self.unwritten);
                self.is_dirty = true;
            }
            Persistence::Always(file) => {
                file.append(&self.unwritten);
                file.sync();
            }
        }
        self.unwritten.clear();
    }

    /// Whether the file waits for its sync.
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty
            || (!self.unwritten.is_empty() && matches!(self.persistence, Persistence::EverySecond(_)))
    }

    pub(crate) fn is_enabled(&self) -> bool {
        !matches!(self.persistence, Persistence::None)
    }

    /// The sync that is due each second.
    pub(crate) fn sync(&mut self) {
        self.write();
        if let Persistence::EverySecond(file) = &self.persistence
            && std::mem::take(&mut self.is_dirty)
        {
            file.sync();
        }
    }
}

/// Restores the keys from the file. What a crash cut off at its end is cut away.
pub(crate) fn load(core: &mut Core, persistence: &Persistence) {
    let (Persistence::EverySecond(file) | Persistence::Always(file)) = persistence else { return };
    let contents = file.contents();
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
        file.truncate(applied);
    }
}

impl fmt::Debug for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::EverySecond(_) => "EverySecond",
            Self::Always(_) => "Always",
        })
    }
}
