//! The limit on the memory of a script. Redis has none unless it is given `maxmemory`; a simulation would
//! take all memory of its machine.

use crate::servers::redis::effects::Effect;

/// The most memory of an interpreter, and the most that a script's commands and its reply may take outside
/// it, each in bytes. A fuzzer's scripts reach it.
pub(super) const BYTES_MAX: usize = if cfg!(fuzzing) { 4 } else { 256 } * 1024 * 1024;

/// The most memory that an interpreter keeps between two scripts, in bytes. Lua itself would keep garbage of
/// twice what the largest script had in use.
pub(super) const KEPT_BYTES_MAX: usize = if cfg!(fuzzing) { 2 } else { 4 } * 1024 * 1024;

/// The memory of a command in the record of its server, and of an element in a reply, beside their texts.
pub(super) const ITEM_BYTES: usize = 64;

/// The error of a command that exceeds the limit: that of Redis when `maxmemory` is reached.
pub(super) const EXCEEDED: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// The error in place of a reply that exceeds the limit.
pub(super) const REPLY_EXCEEDED: &str = "ERR the script returns more than 256 MiB, the limit of this server";

/// The bytes that are left to a script.
#[derive(Debug)]
pub(super) struct Room {
    /// `None`: they were exceeded.
    left: Option<usize>,
}

impl Default for Room {
    fn default() -> Self {
        Self { left: Some(BYTES_MAX) }
    }
}

impl Room {
    /// Takes `bytes`. Returns false if they, or the bytes before them, exceed the limit.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(bytes));
        self.left.is_some()
    }

    /// Takes the values that `effects` stored. A value that APPEND made is longer than the command.
    pub(super) fn store(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Set { value, .. } => _ = self.take(value.len()),
                Effect::Command { encoded, .. } => _ = self.take(encoded.len()),
                _ => {}
            }
        }
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.left.is_none()
    }
}
