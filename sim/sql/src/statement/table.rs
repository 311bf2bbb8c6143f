//! `CREATE TABLE`, `CREATE INDEX` and `ALTER TABLE`.

use std::sync::Arc;

use sqlparser::ast;
use sqlparser::ast::{AlterColumnOperation, AlterTableOperation, RenameTableNameKind, TableConstraint};

use super::columns::refuse_options;
use super::indexes::{free_name, index_columns};
use crate::error::SqlError;
use crate::exec::run::Run;
use crate::plan::binder::{Binder, ident, name_parts};
use crate::storage::lock::Mode;
use crate::storage::stop::Stop;
use crate::storage::table::{Data, Entries, IndexDef, Table, TableDef, TableId};
use crate::storage::transaction::Undo;

impl Run<'_> {
    pub(super) fn create_table(&mut self, create: &ast::CreateTable) -> Result<String, Stop> {
        refuse_options(create)?;
        let tag = || "CREATE TABLE".to_owned();
        let Some((schema, name)) = self.new_name(&create.name, create.if_not_exists)? else {
            return Ok(tag());
        };
        let id = self.store.next_oid();
        let def = TableDef { schema, name, ..TableDef::default() };
        let mut definition = self.define(def);
        for column in &create.columns {
            self.define_column(id, &mut definition, column)?;
        }
        for constraint in &create.constraints {
            self.define_constraint(id, &mut definition, constraint)?;
        }
        self.finish_definition(id, &mut definition)?;
        let entries = vec![Entries::default(); definition.def.indexes.len()];
        let table = Table {
            def: Arc::new(definition.def),
            data: Data { entries, ..Data::default() },
            created_by: Some(self.actor.snapshot.xid),
            dropped_by: None,
            renamed: None,
        };
        self.check_conditions(&table.def)?;
        self.store.tables.insert(id, table);
        self.store.push_undo(self.session.id, Undo::CreateTable(id));
        Ok(tag())
    }

    /// Resolves the conditions and defaults of a table, for the errors that they have.
    fn check_conditions(&self, def: &TableDef) -> Result<(), SqlError> {
        let mut binder = Binder::new(self.store, self.viewer(), "", Vec::new());
        for check in &def.checks {
            binder.table_condition(def, &check.condition)?;
        }
        for predicate in def.indexes.iter().filter_map(|index| index.predicate.as_ref()) {
            binder.index_predicate(def, predicate)?;
        }
        for column in &def.columns {
            binder.default_of(column)?;
        }
        Ok(())
    }

    pub(super) fn create_index(&mut self, create: &ast::CreateIndex) -> Result<String, Stop> {
        let tag = || "CREATE INDEX".to_owned();
        if create.concurrently || !create.include.is_empty() || create.nulls_distinct == Some(false) {
            return Err(SqlError::unknown("this form of CREATE INDEX").into());
        }
        let table = self.locked_table(&create.table_name, Mode::Share)?;
        let def = self.definition(table);
        let columns = index_columns(&def, &create.columns)?;
        let name = match &create.name {
            Some(name) => name_parts(name)?.pop().unwrap_or_default(),
            None => {
                let names = columns.iter().filter_map(|place| def.columns.get(*place));
                let names: Vec<_> = names.map(|column| column.name.as_str()).collect();
                let name = format!("{}_{}_idx", def.name, names.join("_"));
                free_name(&self.store.relation_names(&self.viewer(), &def.schema), &name)
            }
        };
        let full = ast::ObjectName::from(vec![
            ast::Ident::with_quote('"', def.schema.clone()),
            ast::Ident::with_quote('"', name.clone()),
        ]);
        if self.new_name(&full, create.if_not_exists)?.is_none() {
            return Ok(tag());
        }
        let index = IndexDef {
            name,
            columns,
            is_unique: create.unique,
            is_primary: false,
            is_constraint: false,
            predicate: create.predicate.clone().map(Arc::new),
        };
        self.add_index(table, index)?;
        Ok(tag())
    }

    fn definition(&self, table: TableId) -> TableDef {
        self.store.tables.get(&table).map(|table| (*table.def).clone()).unwrap_or_default()
    }

    /// Adds an index to a table that may have rows.
    fn add_index(&mut self, table: TableId, index: IndexDef) -> Result<(), Stop> {
        self.before_alter(table);
        if let Some(found) = self.store.tables.get_mut(&table) {
            Arc::make_mut(&mut found.def).indexes.push(index);
        }
        let def = self.definition(table);
        self.check_conditions(&def)?;
        self.rebuild(table)
    }

    /// Makes the entries of all indexes anew.
    fn rebuild(&mut self, table: TableId) -> Result<(), Stop> {
        let Some(found) = self.store.tables.get_mut(&table) else { return Ok(()) };
        let versions = std::mem::take(&mut found.data.versions);
        found.data.entries = vec![Entries::default(); found.def.indexes.len()];
        for (id, mut version) in versions {
            let Some(values) = self.store.tables.get(&table).map(|found| found.values(&version)) else {
                continue;
            };
            version.values = Arc::from(values.clone());
            let covered = self.covered(table, &values)?;
            let is_live = version.deleted.is_none();
            let conflict =
                if is_live { self.store.conflict(self.actor, table, &values, &covered, None)? } else { None };
            if let Some(conflict) = conflict {
                let mut error = self.store.duplicate(table, conflict, &values);
                let index = error.constraint.clone().unwrap_or_default();
                error.message = format!("could not create unique index \"{index}\"");
                error.detail = error.detail.as_ref().map(|d| d.replace("already exists.", "is duplicated."));
                return Err(error.into());
            }
            if let Some(found) = self.store.tables.get_mut(&table) {
                found.add(id, version, &covered);
            }
        }
        Ok(())
    }

    pub(super) fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<String, Stop> {
        let tag = "ALTER TABLE".to_owned();
        let parts = name_parts(&alter.name)?;
        if alter.if_exists && self.store.table_named(&self.viewer(), &parts).is_none() {
            let text = format!("relation \"{}\" does not exist, skipping", parts.join("."));
            self.notice("00000", text);
            return Ok(tag);
        }
        let table = self.locked_table(&alter.name, Mode::AccessExclusive)?;
        self.before_alter(table);
        for operation in &alter.operations {
            self.alter(table, operation)?;
        }
        let def = self.definition(table);
        self.check_conditions(&def)?;
        Ok(tag)
    }

    fn alter(&mut self, table: TableId, operation: &AlterTableOperation) -> Result<(), Stop> {
        match operation {
            AlterTableOperation::AddColumn { if_not_exists, column_def, .. } => {
                self.add_column(table, *if_not_exists, column_def)
            }
            AlterTableOperation::AddConstraint { constraint, not_valid: false } => {
                self.add_constraint(table, constraint)
            }
            AlterTableOperation::DropConstraint { if_exists, name, .. } => {
                self.drop_constraint(table, &ident(name), *if_exists)
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                self.alter_column(table, &ident(column_name), op)
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                let (old, new) = (ident(old_column_name), ident(new_column_name));
                let place = self.column_place(table, &old)?;
                let def = self.definition(table);
                if def.column(&new).is_some() {
                    let text = format!("column \"{new}\" of relation \"{}\" already exists", def.name);
                    return Err(SqlError::new("42701", text).into());
                }
                let has_conditions = {
                    let def = self.definition(table);
                    !def.checks.is_empty() || def.indexes.iter().any(|index| index.predicate.is_some())
                };
                if has_conditions {
                    return Err(SqlError::unknown("a new name for a column of a table with CHECK").into());
                }
                self.change(table, |def| {
                    if let Some(column) = def.columns.get_mut(place) {
                        column.name = new;
                    }
                });
                Ok(())
            }
            AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(name) } => {
                let def = self.definition(table);
                let name = name_parts(name)?.pop().unwrap_or_default();
                let full = ast::ObjectName::from(vec![
                    ast::Ident::with_quote('"', def.schema),
                    ast::Ident::with_quote('"', name.clone()),
                ]);
                self.new_name(&full, false)?;
                let xid = self.actor.snapshot.xid;
                if let Some(found) = self.store.tables.get_mut(&table) {
                    found.rename(xid, name);
                }
                Ok(())
            }
            other => Err(SqlError::unknown(format_args!("ALTER TABLE … {other}")).into()),
        }
    }

    fn change(&mut self, table: TableId, change: impl FnOnce(&mut TableDef)) {
        if let Some(found) = self.store.tables.get_mut(&table) {
            change(Arc::make_mut(&mut found.def));
        }
    }

    fn column_place(&self, table: TableId, name: &str) -> Result<usize, SqlError> {
        let def = self.definition(table);
        def.column(name).ok_or_else(|| {
            let text = format!("column \"{name}\" of relation \"{}\" does not exist", def.name);
            SqlError::new("42703", text)
        })
    }

    fn add_column(
        &mut self,
        table: TableId,
        if_not_exists: bool,
        column: &ast::ColumnDef,
    ) -> Result<(), Stop> {
        let def = self.definition(table);
        let name = ident(&column.name);
        if def.column(&name).is_some() {
            let text = format!("column \"{name}\" of relation \"{}\" already exists", def.name);
            if !if_not_exists {
                return Err(SqlError::new("42701", text).into());
            }
            self.notice("42701", format!("{text}, skipping"));
            return Ok(());
        }
        let mut definition = self.define(def);
        self.define_column(table, &mut definition, column)?;
        self.finish_definition(table, &mut definition)?;
        if let Some(added) = definition.def.columns.last_mut() {
            let mut binder = Binder::new(self.store, self.viewer(), "", Vec::new());
            let default = binder.default_of(added)?;
            if added.sequence.is_some() {
                return Err(SqlError::unknown("ADD COLUMN of a serial or identity column").into());
            }
            let has_rows = self.store.tables.get(&table).is_some_and(|found| !found.data.versions.is_empty());
            if default.is_volatile() && has_rows {
                let what = "ADD COLUMN of a volatile default to a table with rows";
                return Err(SqlError::unknown(what).into());
            }
            if !default.is_volatile() {
                added.missing = self.evaluate(&default)?;
            }
        }
        let def = definition.def;
        self.change(table, |old| *old = def);
        self.store.add_index(table);
        self.verify(table)?;
        self.rebuild(table)
    }

    /// Checks the live rows of a table against its constraints.
    fn verify(&mut self, table: TableId) -> Result<(), Stop> {
        let rows: Vec<_> = match self.store.tables.get(&table) {
            None => Vec::new(),
            Some(found) => {
                let live = found.data.versions.values().filter(|version| version.deleted.is_none());
                live.map(|version| found.values(version)).collect()
            }
        };
        self.forget_rules(table);
        let def = self.definition(table);
        for row in rows {
            self.check_row(table, &row).map_err(|stop| match stop {
                Stop::Error(error) => Stop::Error(of_existing(error, &def)),
                other => other,
            })?;
            self.refers(table, None, &row);
        }
        Ok(())
    }

    fn add_constraint(&mut self, table: TableId, constraint: &TableConstraint) -> Result<(), Stop> {
        let mut definition = self.define(self.definition(table));
        self.define_constraint(table, &mut definition, constraint)?;
        self.finish_definition(table, &mut definition)?;
        let def = definition.def;
        self.change(table, |old| *old = def);
        self.store.add_index(table);
        self.verify(table)?;
        self.rebuild(table)
    }

    fn drop_constraint(&mut self, table: TableId, name: &str, if_exists: bool) -> Result<(), Stop> {
        let def = self.definition(table);
        if let Some(place) = def.indexes.iter().position(|index| index.name == name && index.is_constraint) {
            self.remove_index(table, place);
            return Ok(());
        }
        let is_known = def.checks.iter().any(|check| check.name == name)
            || def.foreign.iter().any(|key| key.name == name);
        if !is_known {
            let text = format!("constraint \"{name}\" of relation \"{}\" does not exist", def.name);
            if !if_exists {
                return Err(SqlError::new("42704", text).into());
            }
            self.notice("00000", format!("{text}, skipping"));
        }
        self.change(table, |def| {
            def.checks.retain(|check| check.name != name);
            def.foreign.retain(|key| key.name != name);
        });
        Ok(())
    }

    fn alter_column(&mut self, table: TableId, name: &str, op: &AlterColumnOperation) -> Result<(), Stop> {
        let place = self.column_place(table, name)?;
        let column = |def: &mut TableDef, change: &dyn Fn(&mut crate::storage::table::ColumnDef)| {
            if let Some(column) = def.columns.get_mut(place) {
                change(column);
            }
        };
        match op {
            AlterColumnOperation::SetNotNull => {
                self.change(table, |def| column(def, &|column| column.not_null = true));
                self.verify(table)
            }
            AlterColumnOperation::DropNotNull => {
                self.change(table, |def| column(def, &|column| column.not_null = false));
                Ok(())
            }
            AlterColumnOperation::SetDefault { value } => {
                let value = Arc::new(value.clone());
                self.change(table, |def| {
                    column(def, &|column| column.default = Some(Arc::clone(&value)));
                });
                Ok(())
            }
            AlterColumnOperation::DropDefault => {
                self.change(table, |def| column(def, &|column| column.default = None));
                Ok(())
            }
            other => Err(SqlError::unknown(format_args!("ALTER COLUMN … {other}")).into()),
        }
    }
}

/// Rewrites the error of a new row for a row that was there before.
fn of_existing(mut error: SqlError, def: &TableDef) -> SqlError {
    let (table, column, constraint) =
        (&def.name, error.column.clone().unwrap_or_default(), error.constraint.clone().unwrap_or_default());
    match error.code.as_str() {
        "23502" => {
            error.message = format!("column \"{column}\" of relation \"{table}\" contains null values")
        }
        "23514" => {
            error.message =
                format!("check constraint \"{constraint}\" of relation \"{table}\" is violated by some row");
        }
        _ => return error,
    }
    error.detail = None;
    error
}
