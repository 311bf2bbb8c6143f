//! The state of a session outside of its transaction.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::SessionId;
use crate::error::SqlError;
use crate::settings::Settings;
use crate::storage::rows::{Conflict, Locked};
use crate::storage::table::{TableId, VersionId};
use crate::syntax::utility::Modes;

/// A result of a step that is taken once, also if its statement waits and runs again.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Locked(Locked),
    Conflict(Option<Conflict>),
    Versions(Vec<VersionId>),
    Number(i64),
    Flag(bool),
    Done,
}

/// A savepoint.
#[derive(Clone, Debug)]
pub(crate) struct Savepoint {
    pub(crate) name: String,
    pub(crate) undo: usize,
    pub(crate) settings: (Settings, Option<(Settings, Settings)>),
    pub(crate) notifications: usize,
    pub(crate) channel_changes: usize,
}

/// A statement that waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    pub(crate) journal: Vec<Entry>,
    pub(crate) snapshot: Option<crate::storage::transaction::Snapshot>,
    pub(crate) statement_micros: i64,
}

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) settings: Settings,
    /// While a transaction is open: the settings before it, and those that its commit keeps.
    pub(crate) settings_before: Option<(Settings, Settings)>,
    pub(crate) block: Block,
    /// True if the statement that runs is one of several of a simple query: they are an implicit block.
    pub(crate) is_one_of_several: bool,
    pub(crate) savepoints: Vec<Savepoint>,
    /// The modes of the transaction that has failed, for `ROLLBACK AND CHAIN`.
    pub(crate) failed_modes: Option<Modes>,
    pub(crate) transaction_micros: i64,
    pub(crate) pending: Option<Pending>,
    /// The last values of sequences in this session.
    pub(crate) sequence_values: BTreeMap<TableId, i64>,
    pub(crate) last_sequence: Option<TableId>,
    pub(crate) channels: BTreeSet<String>,
    /// Channels to listen to, or to leave, at the commit.
    pub(crate) channel_changes: Vec<ChannelChange>,
    pub(crate) notifications: Vec<(String, String)>,
}

/// A change of the channels that a session listens to.
#[derive(Clone, Debug)]
pub(crate) enum ChannelChange {
    Listen(String),
    Unlisten(String),
    UnlistenAll,
}

/// The transaction block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    None,
    Open,
    Failed,
}

impl Session {
    pub(crate) fn new(id: SessionId) -> Self {
        Self {
            id,
            settings: Settings::default(),
            settings_before: None,
            block: Block::None,
            is_one_of_several: false,
            savepoints: Vec::new(),
            failed_modes: None,
            transaction_micros: 0,
            pending: None,
            sequence_values: BTreeMap::new(),
            last_sequence: None,
            channels: BTreeSet::new(),
            channel_changes: Vec::new(),
            notifications: Vec::new(),
        }
    }
}

/// Makes the error of a statement in a failed block: 25P02.
pub(crate) fn is_aborted() -> SqlError {
    let text = "current transaction is aborted, commands ignored until end of transaction block";
    SqlError::new("25P02", text)
}
