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
        /// The value, which is the same; `None` for a collection.
        value: Option<Arc<[u8]>>,
        /// The expiry of the key, or `None` without one.
        expires_at: Option<i64>,
    },
    /// A key was removed.
    Removed {
        /// The key.
        key: Arc<[u8]>,
        /// Its last value; `None` for a collection.
        value: Option<Arc<[u8]>>,
        /// Why.
        cause: Removal,
    },
    /// All keys of the database were removed at once (FLUSHDB).
    Flushed {
        /// The keys and their values.
        entries: Vec<KeyValue>,
    },
    /// A hash, list, set or sorted set was created, replaced or changed. A [`Effect::Command`] covers it.
    Changed {
        /// The key.
        key: Arc<[u8]>,
    },
    /// The next effects are in another database than those before. The first ones of a record are in
    /// database 0.
    Selected {
        /// The number of the database.
        database: usize,
    },
    /// The command that repeats the next effects, as Redis writes it to its append-only file and replicas.
    Command {
        /// The command, encoded.
        encoded: Vec<u8>,
        /// The number of effects that it repeats.
        covers: usize,
    },
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Arc<[u8]>,
    /// The value; `None` for a collection.
    pub value: Option<Arc<[u8]>>,
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
    /// Returns true if a key expired.
    pub(crate) fn is_expiry(&self) -> bool {
        matches!(self, Self::Removed { cause: Removal::Expired, .. })
    }

    /// Returns true if it changes the value or the expiry of the key called `name`.
    pub(crate) fn changes(&self, name: &[u8]) -> bool {
        match self {
            Self::Set { key, .. }
            | Self::Counted { key, .. }
            | Self::Extended { key, .. }
            | Self::Changed { key }
            | Self::Removed { key, .. } => **key == *name,
            Self::Flushed { entries } => entries.iter().any(|entry| *entry.key == *name),
            Self::Selected { .. } | Self::Command { .. } => false,
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
            Self::Flushed { .. } => push_command(out, &[b"FLUSHDB"]),
            Self::Command { encoded, .. } => out.extend_from_slice(encoded),
            Self::Selected { .. } | Self::Changed { .. } => {}
        }
    }
}

/// Appends the effects of one command or script. Several commands go inside MULTI and EXEC: a truncated file
/// or a broken stream never contains half a script. A unit begins and ends in database 0.
pub(crate) fn encode_unit(effects: &[Effect], out: &mut Vec<u8>) {
    let mut commands = uncovered(effects);
    let is_unit = commands.next().is_some_and(|(database, _)| database != 0) || commands.next().is_some();
    if is_unit {
        push_command(out, &[b"MULTI"]);
    }
    let mut selected = 0;
    for (database, effect) in uncovered(effects) {
        push_select(out, &mut selected, database);
        effect.encode(out);
    }
    push_select(out, &mut selected, 0);
    if is_unit {
        push_command(out, &[b"EXEC"]);
    }
}

/// Appends the command that selects `database`, unless it is `selected` already.
pub(crate) fn push_select(out: &mut Vec<u8>, selected: &mut usize, database: usize) {
    if *selected != database {
        *selected = database;
        // There are only a few databases.
        push_command(out, &[b"SELECT", &decimal(database as i64)]);
    }
}

/// Returns the effects that no command covers, and those commands, each with the number of its database.
fn uncovered(effects: &[Effect]) -> impl Iterator<Item = (usize, &Effect)> {
    let (mut now, mut covered) = (0, 0);
    effects.iter().filter_map(move |effect| {
        let is_covered = covered > 0;
        covered = if is_covered { covered - 1 } else { 0 };
        match effect {
            Effect::Selected { database } => now = *database,
            Effect::Command { covers, .. } => covered = *covers,
            _ => {}
        }
        let is_change = !matches!(effect, Effect::Selected { .. } | Effect::Changed { .. });
        (is_change && !is_covered).then_some((now, effect))
    })
}

pub(crate) fn decimal(number: i64) -> Vec<u8> {
    let mut digits = Vec::with_capacity(20);
    push_i64(&mut digits, number);
    digits
}
