//! SERIALIZABLE: conflicts between reads and writes of concurrent transactions.
//!
//! A transaction that reads what a concurrent one overwrites comes before it: a conflict from the reader to
//! the writer. An anomaly needs two of them in a row, and the last of the three must commit first; then one
//! of the others is refused. Source: Ports and Grittner, "Serializable Snapshot Isolation in PostgreSQL"
//! (2012), and `predicate.c`. What a query reads is remembered by table, by key of an index, or by row.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{RowId, TableId};
use super::transaction::Xid;
use crate::error::SqlError;
use crate::value::Value;

/// A key, or its first columns, of an index of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyRead {
    pub(crate) table: TableId,
    pub(crate) index: usize,
    pub(crate) key: Vec<Value>,
}

/// A serializable transaction, open or committed while others overlap it.
#[derive(Debug, Default)]
struct Serializable {
    /// The number of the last commit in its snapshot.
    snapshot: u64,
    committed: Option<u64>,
    is_read_only: bool,
    is_doomed: bool,
    tables: BTreeSet<TableId>,
    rows: BTreeSet<(TableId, RowId)>,
    keys: BTreeSet<KeyRead>,
    /// Transactions that read what this one wrote over.
    ins: BTreeSet<Xid>,
    /// Transactions that wrote over what this one read.
    outs: BTreeSet<Xid>,
}

/// All serializable transactions that matter.
#[derive(Debug, Default)]
pub(crate) struct Serial {
    all: BTreeMap<Xid, Serializable>,
    by_commit: BTreeMap<u64, Xid>,
}

/// A change of a row.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) table: TableId,
    /// The row, unless it is new.
    pub(crate) row: Option<RowId>,
    /// The index and key of each new entry.
    pub(crate) keys: &'a [(usize, Vec<Value>)],
}

impl Serial {
    pub(crate) fn begin(&mut self, xid: Xid, snapshot: u64, is_read_only: bool) {
        self.all.insert(xid, Serializable { snapshot, is_read_only, ..Serializable::default() });
    }

    /// Refuses a transaction that another one's commit has doomed.
    pub(crate) fn check_doomed(&self, xid: Xid, during: &str) -> Result<(), SqlError> {
        if self.all.get(&xid).is_some_and(|own| own.is_doomed) {
            return Err(refusal(&format!("Canceled on identification as a pivot, during {during}.")));
        }
        Ok(())
    }

    pub(crate) fn read_table(&mut self, xid: Xid, table: TableId) {
        if let Some(own) = self.all.get_mut(&xid) {
            own.tables.insert(table);
        }
    }

    pub(crate) fn read_key(&mut self, xid: Xid, key: KeyRead) {
        if let Some(own) = self.all.get_mut(&xid) {
            own.keys.insert(key);
        }
    }

    pub(crate) fn read_row(&mut self, xid: Xid, table: TableId, row: RowId) {
        if let Some(own) = self.all.get_mut(&xid) {
            own.rows.insert((table, row));
        }
    }

    /// Returns the serializable transaction of a commit.
    pub(crate) fn of_commit(&self, commit: u64) -> Option<Xid> {
        self.by_commit.get(&commit).copied()
    }

    /// Notes that `xid` has read around a write of `writer`, which its snapshot does not see.
    pub(crate) fn missed(&mut self, xid: Xid, writer: Xid) -> Result<(), SqlError> {
        if xid == writer || !self.all.contains_key(&xid) || !self.all.contains_key(&writer) {
            return Ok(());
        }
        self.check_doomed(xid, "conflict out checking")?;
        if self.all.get(&writer).is_some_and(|writer| writer.is_doomed) {
            return Ok(());
        }
        self.conflict(xid, writer, xid)
    }

    /// Notes a write of `xid`, over what concurrent transactions have read.
    pub(crate) fn write(&mut self, xid: Xid, write: &Write<'_>) -> Result<(), SqlError> {
        let Some(own) = self.all.get(&xid) else { return Ok(()) };
        self.check_doomed(xid, "conflict in checking")?;
        let snapshot = own.snapshot;
        let readers = self.all.iter().filter(|(other, reader)| {
            let overlaps = reader.committed.is_none_or(|commit| commit > snapshot);
            **other != xid && !reader.is_doomed && overlaps && reader.has_read(write)
        });
        let readers: Vec<_> = readers.map(|(other, _)| *other).collect();
        for reader in readers {
            self.conflict(reader, xid, xid)?;
        }
        Ok(())
    }

    /// Adds the conflict from a reader to a writer, one of which is `acting`.
    fn conflict(&mut self, reader: Xid, writer: Xid, acting: Xid) -> Result<(), SqlError> {
        if let Some(reader) = self.all.get_mut(&reader) {
            reader.outs.insert(writer);
        }
        if let Some(writer) = self.all.get_mut(&writer) {
            writer.ins.insert(reader);
        }
        if !self.is_dangerous(reader, writer) {
            return Ok(());
        }
        if acting == writer {
            return Err(refusal("Canceled on identification as a pivot, during write."));
        }
        if self.all.get(&writer).is_some_and(|writer| writer.committed.is_some()) {
            let reason = format!("Canceled on conflict out to pivot {}, during read.", writer.0);
            return Err(refusal(&reason));
        }
        if let Some(writer) = self.all.get_mut(&writer) {
            writer.is_doomed = true;
        }
        Ok(())
    }

    /// Returns whether the conflict makes two in a row whose last transaction commits first.
    fn is_dangerous(&self, reader_xid: Xid, writer_xid: Xid) -> bool {
        let (Some(reader), Some(writer)) = (self.all.get(&reader_xid), self.all.get(&writer_xid)) else {
            return false;
        };
        // reader → writer → last
        let writer_is_pivot = writer.outs.iter().filter_map(|last| self.all.get(last)).any(|last| {
            last.committed.is_some_and(|commit| {
                reader.committed.is_none_or(|own| commit <= own)
                    && writer.committed.is_none_or(|own| commit <= own)
                    && (!reader.is_read_only || commit <= reader.snapshot)
            })
        });
        // first → reader → writer
        let reader_is_pivot = writer.committed.is_some_and(|commit| {
            !reader.is_read_only
                && reader.ins.iter().filter_map(|first| self.all.get(first)).any(|first| {
                    !first.is_doomed
                        && first.committed.is_none_or(|own| own >= commit)
                        && (!first.is_read_only || first.snapshot >= commit)
                })
        });
        writer_is_pivot || reader_is_pivot
    }

    /// Decides whether a transaction may commit, and dooms the pivots that its commit makes.
    pub(crate) fn before_commit(&mut self, xid: Xid) -> Result<(), SqlError> {
        let Some(own) = self.all.get(&xid) else { return Ok(()) };
        self.check_doomed(xid, "commit attempt")?;
        let is_open = |other: &Serializable| other.committed.is_none() && !other.is_doomed;
        let pivots = own.ins.iter().filter(|near| {
            self.all.get(near).filter(|near| is_open(near)).is_some_and(|near| {
                near.ins.iter().any(|far| {
                    let far_is_open = |far: &Serializable| is_open(far) && !far.is_read_only;
                    *far == xid || self.all.get(far).is_some_and(far_is_open)
                })
            })
        });
        let pivots: Vec<_> = pivots.copied().collect();
        for pivot in pivots {
            if let Some(pivot) = self.all.get_mut(&pivot) {
                pivot.is_doomed = true;
            }
        }
        Ok(())
    }

    /// Notes a commit; forgets the transactions that no open one overlaps.
    pub(crate) fn commit(&mut self, xid: Xid, commit: u64) {
        if let Some(own) = self.all.get_mut(&xid) {
            own.committed = Some(commit);
            self.by_commit.insert(commit, xid);
        }
        self.forget();
    }

    /// Forgets a transaction that is rolled back.
    pub(crate) fn abort(&mut self, xid: Xid) {
        self.all.remove(&xid);
        for other in self.all.values_mut() {
            other.ins.remove(&xid);
            other.outs.remove(&xid);
        }
        self.forget();
    }

    fn forget(&mut self) {
        let open = self.all.values().filter(|other| other.committed.is_none());
        let Some(oldest) = open.map(|other| other.snapshot).min() else {
            self.all.clear();
            self.by_commit.clear();
            return;
        };
        self.all.retain(|_, other| other.committed.is_none_or(|commit| commit > oldest));
        self.by_commit.retain(|commit, _| *commit > oldest);
    }
}

impl Serializable {
    fn has_read(&self, write: &Write<'_>) -> bool {
        self.tables.contains(&write.table)
            || write.row.is_some_and(|row| self.rows.contains(&(write.table, row)))
            || self.keys.iter().any(|read| {
                read.table == write.table
                    && write
                        .keys
                        .iter()
                        .any(|(index, key)| *index == read.index && key.starts_with(&read.key))
            })
    }
}

fn refusal(reason: &str) -> SqlError {
    let text = "could not serialize access due to read/write dependencies among transactions";
    SqlError::new("40001", text)
        .detail(format!("Reason code: {reason}"))
        .hint("The transaction might succeed if retried.")
}
