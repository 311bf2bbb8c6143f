//! Locks, inserts, updates and deletes of single rows.

use std::sync::Arc;

use super::lock::{RowMode, WaitFor};
use super::serial::Write;
use super::stop::Stop;
use super::store::Store;
use super::table::{IndexDef, RowId, TableDef, TableId, Version, VersionId};
use super::transaction::{Snapshot, Stamp, Undo, Xid};
use crate::api::SessionId;
use crate::error::SqlError;
use crate::value::Value;

/// What to do about a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Wait,
    NoWait,
    Skip,
}

/// What came of locking a version of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    Same,
    /// The row was updated since the snapshot: its newest version is locked instead.
    Moved(VersionId),
    /// The row was deleted since the snapshot.
    Gone,
    /// The running command has changed it already.
    Own,
    Skipped,
}

/// Who runs a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor {
    pub(crate) session: SessionId,
    pub(crate) snapshot: Snapshot,
    /// Whether all statements share the snapshot.
    pub(crate) is_repeatable: bool,
}

/// A unique index that has the key already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) index: usize,
    pub(crate) version: VersionId,
}

impl Store {
    /// Locks the row of a version that the snapshot sees.
    pub(crate) fn lock_row(
        &mut self,
        actor: Actor,
        table: TableId,
        version: VersionId,
        mode: RowMode,
        policy: Policy,
    ) -> Result<Locked, Stop> {
        let Some(found) = self.version(table, version) else { return Ok(Locked::Gone) };
        let row = found.row;
        if matches!(found.deleted, Some(Stamp::Open { xid, .. }) if xid == actor.snapshot.xid) {
            return Ok(Locked::Own);
        }
        let blockers = self.locks.row_blockers(actor.session, (table, row), mode);
        if !blockers.is_empty() {
            return match policy {
                Policy::Wait => Err(Stop::Wait { on: blockers, what: WaitFor::Row(Some((table, row))) }),
                Policy::Skip => Ok(Locked::Skipped),
                Policy::NoWait => {
                    let name = self.tables.get(&table).map_or("", |table| &table.def.name);
                    let text = format!("could not obtain lock on row in relation \"{name}\"");
                    Err(SqlError::new("55P03", text).into())
                }
            };
        }
        let Some(newest) = self.newest(table, version) else {
            return if actor.is_repeatable { Err(concurrent("delete").into()) } else { Ok(Locked::Gone) };
        };
        if newest != version && actor.is_repeatable {
            return Err(concurrent("update").into());
        }
        let ended = self.version(table, newest).and_then(|newest| newest.deleted);
        if matches!(ended, Some(Stamp::Open { xid, .. }) if xid == actor.snapshot.xid) {
            // The command has reached the row by this version before, and has followed the update already.
            return Ok(Locked::Own);
        }
        self.number_of(actor.session);
        if self.locks.take_row(actor.session, (table, row), mode) {
            self.push_undo(actor.session, Undo::RowLock(table, row, mode));
        }
        Ok(if newest == version { Locked::Same } else { Locked::Moved(newest) })
    }

    /// Follows committed updates to the newest version of a row; `None` if it is deleted.
    fn newest(&self, table: TableId, version: VersionId) -> Option<VersionId> {
        let mut id = version;
        loop {
            let version = self.version(table, id)?;
            match version.deleted {
                Some(Stamp::At(_)) => id = version.next?,
                _ => return Some(id),
            }
        }
    }

    pub(crate) fn version(&self, table: TableId, version: VersionId) -> Option<&Version> {
        self.tables.get(&table)?.data.versions.get(&version)
    }

    /// Returns a row that is in the way of new values, in the first of the given unique indexes that has one.
    pub(crate) fn conflict(
        &self,
        actor: Actor,
        table: TableId,
        values: &[Value],
        covered: &[bool],
        except: Option<RowId>,
    ) -> Result<Option<Conflict>, Stop> {
        let Some(found) = self.tables.get(&table) else { return Ok(None) };
        for (number, (index, entries)) in found.def.indexes.iter().zip(&found.data.entries).enumerate() {
            let key = index.key(values);
            let covers = covered.get(number).copied().unwrap_or(false);
            if !index.is_unique || !covers || key.contains(&Value::Null) {
                continue;
            }
            for id in entries.0.get(&key).into_iter().flatten() {
                let version = found.data.versions.get(id).filter(|version| Some(version.row) != except);
                if version.is_some_and(|version| self.is_live(actor, version).unwrap_or(true)) {
                    version.map_or(Ok(true), |version| self.is_live(actor, version))?;
                    return Ok(Some(Conflict { index: number, version: *id }));
                }
            }
        }
        Ok(None)
    }

    /// Returns whether a version exists, whatever the snapshot; waits for a transaction that decides it.
    fn is_live(&self, actor: Actor, version: &Version) -> Result<bool, Stop> {
        let own = actor.snapshot.xid;
        let wait = |xid: Xid| {
            let on = self.open.get(&xid).copied().into_iter().collect();
            Err(Stop::Wait { on, what: WaitFor::Row(None) })
        };
        match (version.created, version.deleted) {
            (Stamp::Open { xid, .. }, _) if xid != own => wait(xid),
            (_, None) => Ok(true),
            (_, Some(Stamp::Open { xid, .. })) if xid != own => wait(xid),
            (_, Some(_)) => Ok(false),
        }
    }

    /// Inserts a row, which no unique index may have.
    pub(crate) fn insert(
        &mut self,
        actor: Actor,
        table: TableId,
        values: Vec<Value>,
        covered: &[bool],
    ) -> Result<VersionId, Stop> {
        self.before_write(actor, table, None, &values, covered)?;
        if let Some(conflict) = self.conflict(actor, table, &values, covered, None)? {
            return Err(self.duplicate(table, conflict, &values).into());
        }
        self.next_row += 1;
        Ok(self.add(actor, table, RowId(self.next_row), values, covered))
    }

    fn add(
        &mut self,
        actor: Actor,
        table: TableId,
        row: RowId,
        values: Vec<Value>,
        covered: &[bool],
    ) -> VersionId {
        self.next_version += 1;
        self.number_of(actor.session);
        let id = VersionId(self.next_version);
        let created = Stamp::Open { xid: actor.snapshot.xid, command: actor.snapshot.command };
        let version = Version { row, created, deleted: None, next: None, values: Arc::from(values) };
        if let Some(table) = self.tables.get_mut(&table) {
            table.add(id, version, covered);
        }
        self.push_undo(actor.session, Undo::Insert(table, id));
        id
    }

    /// Replaces the newest version of a row, which is locked.
    pub(crate) fn update(
        &mut self,
        actor: Actor,
        table: TableId,
        version: VersionId,
        values: Vec<Value>,
        covered: &[bool],
    ) -> Result<VersionId, Stop> {
        let Some(row) = self.version(table, version).map(|version| version.row) else {
            return Err(SqlError::new("XX000", "an updated row is missing").into());
        };
        self.before_write(actor, table, Some(row), &values, covered)?;
        if let Some(conflict) = self.conflict(actor, table, &values, covered, Some(row))? {
            return Err(self.duplicate(table, conflict, &values).into());
        }
        let id = self.add(actor, table, row, values, covered);
        self.end_version(actor, table, version, Some(id));
        Ok(id)
    }

    /// Deletes the newest version of a row, which is locked.
    pub(crate) fn delete(&mut self, actor: Actor, table: TableId, version: VersionId) -> Result<(), Stop> {
        let row = self.version(table, version).map(|version| version.row);
        self.before_write(actor, table, row, &[], &[])?;
        self.number_of(actor.session);
        self.end_version(actor, table, version, None);
        Ok(())
    }

    fn end_version(&mut self, actor: Actor, table: TableId, version: VersionId, next: Option<VersionId>) {
        let stamp = Stamp::Open { xid: actor.snapshot.xid, command: actor.snapshot.command };
        let found = self.tables.get_mut(&table).and_then(|table| table.data.versions.get_mut(&version));
        if let Some(found) = found {
            (found.deleted, found.next) = (Some(stamp), next);
            self.push_undo(actor.session, Undo::Delete(table, version));
        }
    }

    /// Checks a write against what concurrent serializable transactions have read.
    fn before_write(
        &mut self,
        actor: Actor,
        table: TableId,
        row: Option<RowId>,
        values: &[Value],
        covered: &[bool],
    ) -> Result<(), SqlError> {
        let def = self.tables.get(&table).map(|table| Arc::clone(&table.def)).unwrap_or_default();
        let indexes = def.indexes.iter().enumerate().zip(covered);
        let keys = indexes.filter(|((_, index), covers)| **covers && index.is_kept());
        let keys: Vec<_> = keys.map(|((number, index), _)| (number, index.key(values))).collect();
        self.serial.write(actor.snapshot.xid, &Write { table, row, keys: &keys })
    }

    /// Makes the error of a duplicate key: 23505.
    pub(crate) fn duplicate(&self, table: TableId, conflict: Conflict, values: &[Value]) -> SqlError {
        let Some(found) = self.tables.get(&table) else { return SqlError::new("23505", "duplicate key") };
        let Some(index) = found.def.indexes.get(conflict.index) else {
            return SqlError::new("23505", "duplicate key");
        };
        let text = format!("duplicate key value violates unique constraint \"{}\"", index.name);
        let key = key_in_words(&found.def, index, values);
        SqlError::new("23505", text).detail(format!("Key {key} already exists.")).with(|fields| {
            fields.schema = Some(found.def.schema.clone());
            fields.table = Some(found.def.name.clone());
            fields.constraint = Some(index.name.clone());
        })
    }
}

/// Returns `(a, b)=(1, 2)`.
fn key_in_words(def: &TableDef, index: &IndexDef, values: &[Value]) -> String {
    named_values(def, &index.columns, &index.key(values))
}

/// Returns the names of columns with values: `(a, b)=(1, 2)`.
pub(crate) fn named_values(def: &TableDef, columns: &[usize], values: &[Value]) -> String {
    let names = columns.iter().map(|place| def.columns.get(*place).map_or("", |column| &column.name));
    let names: Vec<_> = names.collect();
    let values: Vec<_> = values.iter().map(|value| value.text().unwrap_or("null".to_owned())).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// Rewrites the error of a row that is gone: a lock without a change calls a delete an update.
pub(crate) fn of_lock(stop: Stop) -> Stop {
    match stop {
        Stop::Error(error) if error == concurrent("delete") => concurrent("update").into(),
        other => other,
    }
}

/// Makes the error of REPEATABLE READ and SERIALIZABLE for a row that has changed since the snapshot: 40001.
pub(crate) fn concurrent(change: &str) -> SqlError {
    SqlError::new("40001", format!("could not serialize access due to concurrent {change}"))
}
