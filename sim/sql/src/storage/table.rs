//! A table: its definition, its row versions and its indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) use super::ids::{RowId, TableId, VersionId};
use super::ids::{Snapshot, Stamp, Xid};
use crate::value::Value;
use crate::value::types::Type;

/// A type with its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modified {
    pub(crate) r#type: Type,
    pub(crate) modifier: Modifier,
}

/// The limit that a declaration sets to a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modifier {
    None,
    /// Characters of `varchar(n)`.
    Length(usize),
    /// Digits, and those after the point, of `numeric(p, s)`.
    Digits(i64, i64),
}

/// Who gives an identity column its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    Always,
    ByDefault,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct ColumnDef {
    pub(crate) name: String,
    pub(crate) r#type: Modified,
    pub(crate) not_null: bool,
    pub(crate) default: Option<Arc<sqlparser::ast::Expr>>,
    pub(crate) identity: Option<Identity>,
    /// The sequence of a serial or identity column.
    pub(crate) sequence: Option<TableId>,
    /// The value in rows that are older than the column.
    pub(crate) missing: Value,
}

/// A condition that each row meets.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) condition: Arc<sqlparser::ast::Expr>,
}

/// What becomes of the rows that refer to a deleted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDelete {
    Refuse,
    Cascade,
    SetNull,
}

/// A reference to rows of another table.
#[derive(Clone, Debug)]
pub(crate) struct ForeignKey {
    pub(crate) name: String,
    pub(crate) columns: Vec<usize>,
    pub(crate) parent: TableId,
    pub(crate) parent_columns: Vec<usize>,
    pub(crate) on_delete: OnDelete,
}

/// An index.
#[derive(Clone, Debug)]
pub(crate) struct IndexDef {
    pub(crate) name: String,
    pub(crate) columns: Vec<usize>,
    pub(crate) is_unique: bool,
    pub(crate) is_primary: bool,
    /// Whether a constraint owns it.
    pub(crate) is_constraint: bool,
    /// The rows that it has; the others are no part of it.
    pub(crate) predicate: Option<Arc<sqlparser::ast::Expr>>,
}

impl IndexDef {
    /// Returns whether the index has entries: one without uniqueness and for some rows only would find
    /// nothing that a scan does not find.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_unique || self.predicate.is_none()
    }

    pub(crate) fn key(&self, values: &[Value]) -> Vec<Value> {
        self.columns.iter().map(|place| values.get(*place).cloned().unwrap_or(Value::Null)).collect()
    }
}

/// The definition of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableDef {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) columns: Vec<ColumnDef>,
    pub(crate) checks: Vec<Check>,
    pub(crate) foreign: Vec<ForeignKey>,
    pub(crate) indexes: Vec<IndexDef>,
}

impl TableDef {
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    pub(crate) fn primary(&self) -> Option<&IndexDef> {
        self.indexes.iter().find(|index| index.is_primary)
    }

    /// Returns the columns of unique indexes: a change of them locks the row for `UPDATE`, other changes for
    /// `NO KEY UPDATE`.
    pub(crate) fn key_columns(&self) -> BTreeSet<usize> {
        let unique = self.indexes.iter().filter(|index| index.is_unique && index.predicate.is_none());
        unique.flat_map(|index| index.columns.iter().copied()).collect()
    }
}

/// A version of a row.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) row: RowId,
    pub(crate) created: Stamp,
    pub(crate) deleted: Option<Stamp>,
    /// The version that replaces this one, if the row was updated.
    pub(crate) next: Option<VersionId>,
    pub(crate) values: Arc<[Value]>,
}

impl Version {
    pub(crate) fn is_visible(&self, snapshot: &Snapshot) -> bool {
        snapshot.sees(self.created) && !self.deleted.is_some_and(|stamp| snapshot.sees(stamp))
    }
}

/// The versions by the keys of an index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries(pub(crate) BTreeMap<Vec<Value>, BTreeSet<VersionId>>);

/// The rows of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    pub(crate) versions: BTreeMap<VersionId, Version>,
    /// The entries of each index, in the order of the definitions.
    pub(crate) entries: Vec<Entries>,
}

/// A table with its rows.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) def: Arc<TableDef>,
    pub(crate) data: Data,
    /// The transaction that creates it; nobody else sees it.
    pub(crate) created_by: Option<Xid>,
    /// The transaction that drops it; it no longer sees it.
    pub(crate) dropped_by: Option<Xid>,
    /// The transaction that gives it a new name, and the name that all others still see.
    pub(crate) renamed: Option<(Xid, String)>,
}

impl Table {
    /// Returns the name that a transaction sees.
    pub(crate) fn name_for(&self, xid: Option<Xid>) -> &str {
        match &self.renamed {
            Some((by, committed)) if xid != Some(*by) => committed,
            _ => &self.def.name,
        }
    }

    /// Gives the table a name that only one transaction sees until it commits.
    pub(crate) fn rename(&mut self, by: Xid, name: String) {
        let before = self.def.name.clone();
        Arc::make_mut(&mut self.def).name = name;
        self.renamed.get_or_insert((by, before));
        self.forget_rename_to_itself();
    }

    /// Puts back the definition and the rows of before a change.
    pub(crate) fn restore(&mut self, def: Arc<TableDef>, data: Data) {
        (self.def, self.data) = (def, data);
        self.forget_rename_to_itself();
    }

    fn forget_rename_to_itself(&mut self) {
        self.renamed.take_if(|(_, committed)| *committed == self.def.name);
    }

    /// Stores a version with its entries in the indexes that cover it.
    pub(crate) fn add(&mut self, id: VersionId, version: Version, covered: &[bool]) {
        for ((index, entries), covers) in self.def.indexes.iter().zip(&mut self.data.entries).zip(covered) {
            if *covers && index.is_kept() {
                entries.0.entry(index.key(&version.values)).or_default().insert(id);
            }
        }
        self.data.versions.insert(id, version);
    }

    /// Removes a version and its entries.
    pub(crate) fn remove(&mut self, id: VersionId) {
        let Some(version) = self.data.versions.remove(&id) else { return };
        for (index, entries) in self.def.indexes.iter().zip(&mut self.data.entries) {
            let key = index.key(&version.values);
            if let Some(ids) = entries.0.get_mut(&key) {
                ids.remove(&id);
                if ids.is_empty() {
                    entries.0.remove(&key);
                }
            }
        }
    }

    /// Returns the values of a version, with those of columns that are younger than it.
    pub(crate) fn values(&self, version: &Version) -> Vec<Value> {
        let younger = self.def.columns.iter().skip(version.values.len());
        version.values.iter().cloned().chain(younger.map(|column| column.missing.clone())).collect()
    }
}
