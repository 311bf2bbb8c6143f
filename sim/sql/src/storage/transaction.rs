//! A transaction: its snapshot, and how to undo it.

use std::sync::Arc;

pub(crate) use super::ids::{Snapshot, Stamp, Xid};
use super::lock::{Mode, RowMode, Target};
use super::sequence::Sequence;
use super::table::{Data, RowId, TableDef, TableId, VersionId};

/// The isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    pub(crate) const ALL: [(Self, &str); 4] = [
        (Self::ReadUncommitted, "read uncommitted"),
        (Self::ReadCommitted, "read committed"),
        (Self::RepeatableRead, "repeatable read"),
        (Self::Serializable, "serializable"),
    ];

    /// Returns whether all statements of the transaction share a snapshot.
    pub(crate) fn has_one_snapshot(self) -> bool {
        matches!(self, Self::RepeatableRead | Self::Serializable)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("", |(_, name)| name)
    }
}

/// One change, and what takes it back.
#[derive(Debug)]
pub(crate) enum Undo {
    Insert(TableId, VersionId),
    Delete(TableId, VersionId),
    RowLock(TableId, RowId, RowMode),
    Lock(Target, Mode),
    CreateTable(TableId),
    DropTable(TableId),
    /// The definition and the rows before.
    AlterTable(TableId, Arc<TableDef>, Box<Data>),
    CreateSequence(TableId),
    DropSequence(TableId),
    AlterSequence(TableId, Box<Sequence>),
    CreateSchema(String),
    DropSchema(String),
}

impl Undo {
    /// Returns whether the change is one of tables, sequences or schemas.
    pub(super) fn is_of_catalog(&self) -> bool {
        !matches!(self, Self::Insert(..) | Self::Delete(..) | Self::RowLock(..) | Self::Lock(..))
    }
}

/// A change for the log, beside those of rows: statements that change the catalog.
#[derive(Clone, Debug)]
pub(crate) struct Ddl {
    pub(crate) sql: String,
    pub(crate) search_path: String,
    pub(crate) unix_micros: i64,
}

/// A transaction that is open.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) xid: Xid,
    /// The number that clients see, once it has one.
    pub(crate) number: Option<u64>,
    pub(crate) isolation: Isolation,
    pub(crate) is_read_only: bool,
    /// The command that runs; each statement is one.
    pub(crate) command: u32,
    /// The snapshot of all statements, above READ COMMITTED.
    pub(crate) snapshot: Option<u64>,
    pub(crate) undo: Vec<Undo>,
    /// Statements for the log, each before the change of this place in `undo`.
    pub(crate) ddl: Vec<(usize, Ddl)>,
}
