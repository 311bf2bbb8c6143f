//! The changes of keys by commands, as one stream that observers, the append-only file and replicas read.

use std::sync::Arc;

use super::number::push_i64;
use super::reply::push_command;

/// One change of one key. Times are milliseconds since the Unix epoch on the server's wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A value was stored with its expiry, in place of `former`.
    Set {
        /// The key.
        key: Arc<[u8]>,
        /// The new value.
        value: Arc<[u8]>,
        /// The expiry of the key, or `None` without one.
        expires_at: Option<i64>,
        /// The value before.
        former: Option<Arc<[u8]>>,
    },
    /// A counter was changed by `by`; its expiry is the same.
    Counted {
        /// The key.
        key: Arc<[u8]>,
        /// The counter's new value.
        value: i64,
        /// The difference to the value before.
        by: i64,
    },
    /// Only the expiry changed.
    Extended {
        /// The key.
        key: Arc<[u8]>,
        /// The value, which is the same.
        value: Arc<[u8]>,
        /// The expiry of the key, or `None` without one.
        expires_at: Option<i64>,
    },
    /// A key was removed.
    Removed {
        /// The key.
        key: Arc<[u8]>,
        /// Its last value.
        value: Arc<[u8]>,
        /// Why.
        cause: Removal,
    },
    /// All keys were removed at once (FLUSHALL).
    Flushed {
        /// The keys and their values.
        entries: Vec<KeyValue>,
    },
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Arc<[u8]>,
    /// The value.
    pub value: Arc<[u8]>,
}

/// Why a key was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A client deleted it.
    Deleted,
    /// It expired.
    Expired,
    /// The server was short of memory (a fault: [`super::Server::evict`]).
    Evicted,
}

impl Effect {
    /// Returns true if it changes the value or the expiry of the key called `name`.
    pub(crate) fn changes(&self, name: &[u8]) -> bool {
        match self {
            Self::Set { key, .. }
            | Self::Counted { key, .. }
            | Self::Extended { key, .. }
            | Self::Removed { key, .. } => **key == *name,
            Self::Flushed { entries } => entries.iter().any(|entry| *entry.key == *name),
        }
    }

    /// Appends the effect as the command that repeats it, as Redis writes it to its append-only file and
    /// replicas: with absolute times, so that its meaning does not depend on when it is read.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Set { key, value, expires_at: None, .. } => push_command(out, &[b"SET", key, value]),
            Self::Set { key, value, expires_at: Some(at), .. } => {
                push_command(out, &[b"SET", key, value, b"PXAT", &decimal(*at)]);
            }
            Self::Counted { key, by, .. } => push_command(out, &[b"INCRBY", key, &decimal(*by)]),
            Self::Extended { key, expires_at: Some(at), .. } => {
                push_command(out, &[b"PEXPIREAT", key, &decimal(*at)]);
            }
            Self::Extended { key, expires_at: None, .. } => push_command(out, &[b"PERSIST", key]),
            Self::Removed { key, .. } => push_command(out, &[b"DEL", key]),
            Self::Flushed { .. } => push_command(out, &[b"FLUSHALL"]),
        }
    }
}

/// Appends the effects of one command or script. Several effects go inside MULTI and EXEC: a truncated file
/// or a broken stream never contains half a script.
pub(crate) fn encode_unit(effects: &[Effect], out: &mut Vec<u8>) {
    if effects.len() > 1 {
        push_command(out, &[b"MULTI"]);
    }
    effects.iter().for_each(|effect| effect.encode(out));
    if effects.len() > 1 {
        push_command(out, &[b"EXEC"]);
    }
}

fn decimal(number: i64) -> Vec<u8> {
    let mut digits = Vec::with_capacity(20);
    push_i64(&mut digits, number);
    digits
}
