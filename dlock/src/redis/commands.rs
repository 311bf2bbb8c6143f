//! The commands by which newer servers compare and delete, or compare and set.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use redis::{Cmd, cmd};

use super::script::{Arg, StoredKey};

/// The commands of the server at the other end of a connection.
#[derive(Debug, Default)]
pub(super) struct Commands {
    own: AtomicU8,
    /// True once the server has refused a `SET` with `NX` and `GET`, which Redis has from version 7 on.
    lacks_set_nx_get: AtomicBool,
}

const UNKNOWN: u8 = 0;
const NONE: u8 = 1;
const DELEX: u8 = 2;
const DELIFEQ: u8 = 3;

impl Commands {
    /// Returns true until an answer has told which commands there are.
    pub(super) fn are_unknown(&self) -> bool {
        self.get() == UNKNOWN
    }

    /// Returns true if the scripts must be used.
    pub(super) fn are_scripts(&self) -> bool {
        self.get() == NONE
    }

    /// Notes the name of the server's compare-and-delete.
    pub(super) fn learn(&self, name: &[u8]) {
        self.set(match name {
            b"DELEX" => DELEX,
            b"DELIFEQ" => DELIFEQ,
            _ => NONE,
        });
    }

    /// Notes that the scripts must be used.
    pub(super) fn forget(&self) {
        self.set(NONE);
    }

    /// Returns the command that deletes `key` if its value is `owner`, if the server has one.
    pub(super) fn delete(&self, key: StoredKey<'_>, owner: Arg<'_>) -> Option<Cmd> {
        match self.get() {
            DELEX => Some(cmd("DELEX").arg(key).arg("IFEQ").arg(owner).take()),
            DELIFEQ => Some(cmd("DELIFEQ").arg(key).arg(owner).take()),
            _ => None,
        }
    }

    /// Returns the command that sets the TTL of `key` if its value is `owner`, if the server has one.
    pub(super) fn extend(&self, key: StoredKey<'_>, owner: Arg<'_>, ttl: Arg<'_>) -> Option<Cmd> {
        let has_one = matches!(self.get(), DELEX | DELIFEQ);
        has_one.then(|| cmd("SET").arg(key).arg(owner).arg("IFEQ").arg(owner).arg("PX").arg(ttl).take())
    }

    /// Returns whether the server may have `SET` with `NX` and `GET`.
    pub(super) fn may_set_nx_get(&self) -> bool {
        !self.lacks_set_nx_get.load(Ordering::Relaxed)
    }

    /// Notes that the server has no `SET` with `NX` and `GET`.
    pub(super) fn note_no_set_nx_get(&self) {
        self.lacks_set_nx_get.store(true, Ordering::Relaxed);
    }

    fn get(&self) -> u8 {
        self.own.load(Ordering::Relaxed)
    }

    fn set(&self, commands: u8) {
        self.own.store(commands, Ordering::Relaxed);
    }
}
