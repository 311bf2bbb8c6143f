//! Names of tables, sequences and schemas.

use std::collections::BTreeSet;

use super::sequence::Sequence;
use super::store::Store;
use super::table::{Table, TableId};
use super::transaction::Xid;

/// Who looks a name up, and where.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    pub(crate) xid: Option<Xid>,
    /// The schemas for names without one.
    pub(crate) search_path: Vec<String>,
}

impl Viewer {
    fn sees(&self, created_by: Option<Xid>, dropped_by: Option<Xid>) -> bool {
        let is_own = |by: Option<Xid>| by.is_some() && by == self.xid;
        (created_by.is_none() || is_own(created_by)) && !is_own(dropped_by)
    }

    /// Returns the schemas in which a name is looked up, and the name itself.
    fn places<'a>(&'a self, name: &'a [String]) -> (&'a [String], &'a str) {
        match name {
            [schema, name] => (std::slice::from_ref(schema), name),
            [_, schema, name] => (std::slice::from_ref(schema), name),
            [name] => (&self.search_path, name),
            _ => (&[], ""),
        }
    }
}

impl Store {
    pub(crate) fn table_named(&self, viewer: &Viewer, name: &[String]) -> Option<(TableId, &Table)> {
        let (schemas, name) = viewer.places(name);
        schemas.iter().find_map(|schema| {
            let is_it = |table: &Table| table.def.schema == *schema && table.name_for(viewer.xid) == name;
            let mut found = self.tables.iter().filter(|(_, table)| is_it(table));
            found.find(|(_, table)| viewer.sees(table.created_by, table.dropped_by)).map(|(id, t)| (*id, t))
        })
    }

    pub(crate) fn sequence_named(&self, viewer: &Viewer, name: &[String]) -> Option<TableId> {
        let (schemas, name) = viewer.places(name);
        schemas.iter().find_map(|schema| {
            let is_it = |sequence: &Sequence| sequence.schema == *schema && sequence.name == name;
            let mut found = self.sequences.iter().filter(|(_, sequence)| is_it(sequence));
            found.find(|(_, s)| viewer.sees(s.created_by, s.dropped_by)).map(|(id, _)| *id)
        })
    }

    /// Returns the table that has an index of this name.
    pub(crate) fn index_named(&self, viewer: &Viewer, name: &[String]) -> Option<(TableId, usize)> {
        let (schemas, name) = viewer.places(name);
        schemas.iter().find_map(|schema| {
            self.tables.iter().find_map(|(id, table)| {
                let is_seen = viewer.sees(table.created_by, table.dropped_by);
                let place = table.def.indexes.iter().position(|index| index.name == name);
                place.filter(|_| is_seen && table.def.schema == *schema).map(|place| (*id, place))
            })
        })
    }

    pub(crate) fn has_schema(&self, viewer: &Viewer, name: &str) -> bool {
        self.schemas.get(name).is_some_and(|(created_by, dropped_by)| viewer.sees(*created_by, *dropped_by))
    }

    /// Returns the names of all relations of a schema.
    pub(crate) fn relation_names(&self, viewer: &Viewer, schema: &str) -> BTreeSet<String> {
        let is_seen = |table: &&Table| viewer.sees(table.created_by, table.dropped_by);
        let tables = self.tables.values().filter(|table| table.def.schema == schema).filter(is_seen);
        let mut names: BTreeSet<_> = tables
            .flat_map(|table| {
                let indexes = table.def.indexes.iter().map(|index| index.name.clone());
                indexes.chain([table.def.name.clone()]).collect::<Vec<_>>()
            })
            .collect();
        let sequences = self.sequences.values().filter(|sequence| sequence.schema == schema);
        let sequences = sequences.filter(|s| viewer.sees(s.created_by, s.dropped_by));
        names.extend(sequences.map(|sequence| sequence.name.clone()));
        names
    }

    /// Returns whether a relation has the name: a table, a sequence or an index.
    pub(crate) fn has_relation(&self, viewer: &Viewer, name: &[String]) -> bool {
        self.table_named(viewer, name).is_some()
            || self.sequence_named(viewer, name).is_some()
            || self.index_named(viewer, name).is_some()
    }
}
