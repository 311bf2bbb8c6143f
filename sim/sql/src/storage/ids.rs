//! Names of tables, rows and transactions, and what a snapshot sees.

/// A table or another relation, by its object identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TableId(pub(crate) u32);

/// A row through all its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowId(pub(crate) u64);

/// A version of a row; later ones have greater numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VersionId(pub(crate) u64);

/// A transaction of this database, by its number in the order of their beginnings. Clients see another
/// number, which only transactions that write have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Xid(pub(crate) u64);

/// When a version was created or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// By a command of a transaction that is open.
    Open { xid: Xid, command: u32 },
    /// By the commit of this number.
    At(u64),
}

/// What a statement sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The number of the last commit that it sees.
    pub(crate) commit: u64,
    pub(crate) xid: Xid,
    /// It sees the transaction's own commands before this one.
    pub(crate) command: u32,
}

impl Snapshot {
    /// Returns whether it sees the change of a stamp.
    pub(crate) fn sees(&self, stamp: Stamp) -> bool {
        match stamp {
            Stamp::At(commit) => commit <= self.commit,
            Stamp::Open { xid, command } => xid == self.xid && command < self.command,
        }
    }
}
