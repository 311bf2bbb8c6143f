//! Statements that change the catalog.

use std::sync::Arc;

use sqlparser::ast;
use sqlparser::ast::{ObjectType, Statement};

use crate::error::SqlError;
use crate::exec::run::Run;
use crate::plan::binder::{ident, missing_relation, name_parts};
use crate::session::Entry;
use crate::storage::lock::{Mode, Target, Until};
use crate::storage::stop::Stop;
use crate::storage::table::{Data, TableId};
use crate::storage::transaction::Undo;

impl Run<'_> {
    /// Runs a statement that changes the catalog; returns its tag.
    pub(crate) fn ddl(&mut self, statement: &Statement) -> Result<String, Stop> {
        self.store.catalog_version += 1;
        match statement {
            Statement::CreateTable(create) => self.create_table(create),
            Statement::CreateIndex(create) => self.create_index(create),
            Statement::AlterTable(alter) => self.alter_table(alter),
            Statement::CreateSequence { temporary: false, if_not_exists, name, sequence_options } => {
                self.create_sequence(name, *if_not_exists, sequence_options)
            }
            Statement::CreateSchema { schema_name, if_not_exists, .. } => {
                self.create_schema(schema_name, *if_not_exists)
            }
            Statement::Drop { object_type, if_exists, names, cascade, .. } => {
                self.drop_objects(*object_type, *if_exists, names, *cascade)
            }
            Statement::Truncate(truncate) => self.truncate(truncate),
            other => {
                let text = other.to_string();
                let words: Vec<_> = text.split_whitespace().take(2).collect();
                Err(SqlError::unknown(format_args!("the statement {}", words.join(" "))).into())
            }
        }
    }

    pub(super) fn notice(&mut self, code: &str, text: String) {
        self.notices.push(SqlError::notice(code, text));
    }

    /// Takes a lock of the transaction.
    pub(crate) fn lock(&mut self, target: Target, mode: Mode) -> Result<(), Stop> {
        self.once(|run| {
            run.store.lock(run.session.id, target, mode, Until::Transaction)?;
            Ok(Entry::Done)
        })?;
        Ok(())
    }

    /// Returns the schema and the name of a new object; its name is locked until the transaction ends. `None`
    /// if there is one already.
    pub(super) fn new_name(
        &mut self,
        name: &ast::ObjectName,
        if_not_exists: bool,
    ) -> Result<Option<(String, String)>, Stop> {
        let parts = name_parts(name)?;
        let (schema, name) = match &parts[..] {
            [name] => {
                let path = self.session.settings.search_path();
                let missing = || SqlError::new("3F000", "no schema has been selected to create in");
                (path.into_iter().next().ok_or_else(missing)?, name.clone())
            }
            [schema, name] => (schema.clone(), name.clone()),
            _ => return Err(SqlError::unknown("names of three parts").into()),
        };
        let viewer = self.viewer();
        if !self.store.has_schema(&viewer, &schema) {
            return Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist")).into());
        }
        let full = [schema.clone(), name.clone()];
        let is_known = self.store.has_relation(&viewer, &full);
        let entry = self.once(|_| Ok(Entry::Flag(is_known)))?;
        if matches!(entry, Entry::Flag(true)) {
            let text = format!("relation \"{name}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new("42P07", text).into());
            }
            self.notice("42P07", format!("{text}, skipping"));
            return Ok(None);
        }
        self.lock(Target::Name(full.join(".")), Mode::Exclusive)?;
        if self.store.has_relation(&viewer, &full) {
            // Another transaction has committed the name while this one waited for it.
            let index = "pg_type_typname_nsp_index";
            let text = format!("duplicate key value violates unique constraint \"{index}\"");
            let detail = format!("Key (typname, typnamespace)=({name}, 2200) already exists.");
            let error = SqlError::new("23505", text).detail(detail).with(|fields| {
                fields.schema = Some("pg_catalog".to_owned());
                fields.table = Some("pg_type".to_owned());
                fields.constraint = Some(index.to_owned());
            });
            return Err(error.into());
        }
        Ok(Some((schema, name)))
    }

    /// Notes the statement for the log.
    pub(crate) fn log_ddl(&mut self, sql: &str) {
        let unix_micros = self.session.transaction_micros;
        let search_path = self.session.settings.get("search_path").unwrap_or_default();
        if let Some(transaction) = self.store.transactions.get_mut(&self.session.id) {
            let ddl = crate::storage::transaction::Ddl { sql: sql.to_owned(), search_path, unix_micros };
            transaction.ddl.push((transaction.undo.len(), ddl));
        }
    }

    /// Keeps the definition and the rows of a table, for a rollback.
    pub(super) fn before_alter(&mut self, table: TableId) {
        let Some(found) = self.store.tables.get(&table) else { return };
        let undo = Undo::AlterTable(table, Arc::clone(&found.def), Box::new(found.data.clone()));
        self.store.push_undo(self.session.id, undo);
    }

    /// Finds a table to change, and locks it.
    pub(super) fn locked_table(&mut self, name: &ast::ObjectName, mode: Mode) -> Result<TableId, Stop> {
        let parts = name_parts(name)?;
        let found = self.store.table_named(&self.viewer(), &parts).map(|(id, _)| id);
        let table = found.ok_or_else(|| missing_relation(&parts))?;
        self.lock(Target::Table(table), mode)?;
        Ok(table)
    }

    fn create_schema(&mut self, name: &ast::SchemaName, if_not_exists: bool) -> Result<String, Stop> {
        let ast::SchemaName::Simple(name) = name else {
            return Err(SqlError::unknown("the owner of a schema").into());
        };
        let name = name_parts(name)?.pop().unwrap_or_default();
        let is_known = self.store.has_schema(&self.viewer(), &name);
        let entry = self.once(|_| Ok(Entry::Flag(is_known)))?;
        if matches!(entry, Entry::Flag(true)) {
            let text = format!("schema \"{name}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new("42P06", text).into());
            }
            self.notice("42P06", format!("{text}, skipping"));
            return Ok("CREATE SCHEMA".to_owned());
        }
        self.lock(Target::Name(format!("schema {name}")), Mode::Exclusive)?;
        if self.store.has_schema(&self.viewer(), &name) {
            let text = "duplicate key value violates unique constraint \"pg_namespace_nspname_index\"";
            return Err(SqlError::new("23505", text)
                .detail(format!("Key (nspname)=({name}) already exists."))
                .into());
        }
        let xid = self.actor.snapshot.xid;
        self.store.schemas.insert(name.clone(), (Some(xid), None));
        self.store.push_undo(self.session.id, Undo::CreateSchema(name));
        Ok("CREATE SCHEMA".to_owned())
    }

    fn truncate(&mut self, truncate: &ast::Truncate) -> Result<String, Stop> {
        if matches!(truncate.cascade, Some(ast::CascadeOption::Cascade)) {
            return Err(SqlError::unknown("TRUNCATE … CASCADE; name all tables").into());
        }
        let mut tables = Vec::new();
        for target in &truncate.table_names {
            tables.push(self.locked_table(&target.name, Mode::AccessExclusive)?);
        }
        for table in &tables {
            let is_parent = self.store.tables.iter().find(|(child, found)| {
                !tables.contains(child) && found.def.foreign.iter().any(|key| key.parent == *table)
            });
            if let Some((_, child)) = is_parent {
                let text = "cannot truncate a table referenced in a foreign key constraint";
                let parent = self.store.tables.get(table).map_or("", |found| &found.def.name);
                let child = &child.def.name;
                let detail = format!("Table \"{child}\" references \"{parent}\".");
                let hint =
                    format!("Truncate table \"{child}\" at the same time, or use TRUNCATE ... CASCADE.");
                return Err(SqlError::new("0A000", text).detail(detail).hint(hint).into());
            }
        }
        for table in tables {
            self.before_alter(table);
            if let Some(found) = self.store.tables.get_mut(&table) {
                found.data = Data::default();
            }
            self.store.add_index(table);
            if matches!(truncate.identity, Some(ast::TruncateIdentityOption::Restart)) {
                self.restart_sequences(table);
            }
        }
        Ok("TRUNCATE TABLE".to_owned())
    }

    fn restart_sequences(&mut self, table: TableId) {
        let owned = self.store.sequences.iter().filter(|(_, sequence)| sequence.owner == Some(table));
        let owned: Vec<_> = owned.map(|(id, _)| *id).collect();
        let xid = self.actor.snapshot.xid;
        for id in owned {
            let Some(sequence) = self.store.sequences.get_mut(&id) else { continue };
            let before = Box::new(sequence.clone());
            (sequence.last, sequence.is_called, sequence.ahead) = (sequence.start, false, 0);
            sequence.reset_by = Some(xid);
            self.store.push_undo(self.session.id, Undo::AlterSequence(id, before));
        }
    }

    fn drop_objects(
        &mut self,
        kind: ObjectType,
        if_exists: bool,
        names: &[ast::ObjectName],
        cascade: bool,
    ) -> Result<String, Stop> {
        let tag = format!("DROP {kind}");
        let mut together = Vec::new();
        for name in names {
            let parts = name_parts(name)?;
            together.extend(self.store.table_named(&self.viewer(), &parts).map(|(id, _)| id));
        }
        for name in names {
            let parts = name_parts(name)?;
            let is_dropped = match kind {
                ObjectType::Table => self.drop_table(&parts, cascade, &together)?,
                ObjectType::Index => self.drop_index(&parts)?,
                ObjectType::Sequence => self.drop_sequence(&parts)?,
                ObjectType::Schema => self.drop_schema(&parts, cascade)?,
                _ => return Err(SqlError::unknown(&tag).into()),
            };
            let word = kind.to_string().to_lowercase();
            let shown = parts.join(".");
            if !is_dropped && !if_exists {
                let code = if kind == ObjectType::Schema { "3F000" } else { "42P01" };
                let code = if kind == ObjectType::Index { "42704" } else { code };
                return Err(SqlError::new(code, format!("{word} \"{shown}\" does not exist")).into());
            }
            if !is_dropped {
                self.notice("00000", format!("{word} \"{shown}\" does not exist, skipping"));
            }
        }
        Ok(tag)
    }

    /// Drops a table; those that are dropped `together` with it may refer to it.
    fn drop_table(&mut self, name: &[String], cascade: bool, together: &[TableId]) -> Result<bool, Stop> {
        let Some(table) = self.store.table_named(&self.viewer(), name).map(|(id, _)| id) else {
            return Ok(false);
        };
        self.lock(Target::Table(table), Mode::AccessExclusive)?;
        let viewer_xid = self.actor.snapshot.xid;
        let children = self.store.tables.iter().filter(|(child, found)| {
            **child != table
                && found.dropped_by != Some(viewer_xid)
                && found.def.foreign.iter().any(|key| key.parent == table)
        });
        let children: Vec<_> = children.map(|(id, _)| *id).collect();
        let mut others = children.iter().filter(|child| !together.contains(child));
        if let (Some(child), false) = (others.next(), cascade) {
            let parent = self.store.tables.get(&table).map_or("", |found| &found.def.name);
            let key = self.store.tables.get(child).and_then(|found| {
                let key = found.def.foreign.iter().find(|key| key.parent == table)?;
                Some(format!("constraint {} on table {}", key.name, found.def.name))
            });
            let text = format!("cannot drop table {parent} because other objects depend on it");
            let detail = format!("{} depends on table {parent}", key.unwrap_or_default());
            let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
            return Err(SqlError::new("2BP01", text).detail(detail).hint(hint).into());
        }
        for child in children {
            self.lock(Target::Table(child), Mode::AccessExclusive)?;
            self.before_alter(child);
            if let Some(found) = self.store.tables.get_mut(&child) {
                Arc::make_mut(&mut found.def).foreign.retain(|key| key.parent != table);
            }
        }
        if let Some(found) = self.store.tables.get_mut(&table) {
            found.dropped_by = Some(viewer_xid);
        }
        self.store.push_undo(self.session.id, Undo::DropTable(table));
        let owned = self.store.sequences.iter().filter(|(_, sequence)| sequence.owner == Some(table));
        let owned: Vec<_> = owned.map(|(id, _)| *id).collect();
        owned.into_iter().for_each(|id| self.end_sequence(id));
        Ok(true)
    }

    fn end_sequence(&mut self, id: TableId) {
        if let Some(sequence) = self.store.sequences.get_mut(&id) {
            sequence.dropped_by = Some(self.actor.snapshot.xid);
        }
        self.store.push_undo(self.session.id, Undo::DropSequence(id));
    }

    fn drop_sequence(&mut self, name: &[String]) -> Result<bool, Stop> {
        let Some(id) = self.store.sequence_named(&self.viewer(), name) else { return Ok(false) };
        if self.store.sequences.get(&id).is_some_and(|sequence| sequence.owner.is_some()) {
            let shown = name.join(".");
            let text = format!("cannot drop sequence {shown} because other objects depend on it");
            return Err(SqlError::new("2BP01", text).into());
        }
        self.end_sequence(id);
        Ok(true)
    }

    fn drop_index(&mut self, name: &[String]) -> Result<bool, Stop> {
        let Some((table, place)) = self.store.index_named(&self.viewer(), name) else { return Ok(false) };
        self.lock(Target::Table(table), Mode::AccessExclusive)?;
        let index = self.store.tables.get(&table).and_then(|found| found.def.indexes.get(place).cloned());
        if let Some(index) = index.filter(|index| index.is_constraint) {
            let (name, table) = (index.name, self.store.tables.get(&table).map_or("", |t| &t.def.name));
            let text =
                format!("cannot drop index {name} because constraint {name} on table {table} requires it");
            let hint = format!("You can drop constraint {name} on table {table} instead.");
            return Err(SqlError::new("2BP01", text).hint(hint).into());
        }
        self.remove_index(table, place);
        Ok(true)
    }

    pub(super) fn remove_index(&mut self, table: TableId, place: usize) {
        self.before_alter(table);
        if let Some(found) = self.store.tables.get_mut(&table) {
            Arc::make_mut(&mut found.def).indexes.remove(place);
            found.data.entries.remove(place);
        }
    }

    fn drop_schema(&mut self, name: &[String], cascade: bool) -> Result<bool, Stop> {
        let name = name.last().cloned().unwrap_or_default();
        if !self.store.has_schema(&self.viewer(), &name) {
            return Ok(false);
        }
        let xid = self.actor.snapshot.xid;
        let within = self.store.tables.values().filter(|found| found.def.schema == name);
        let within: Vec<_> =
            within.filter(|f| f.dropped_by != Some(xid)).map(|f| f.name_for(Some(xid)).to_owned()).collect();
        let sequences = self.store.sequences.iter().filter(|(_, sequence)| {
            sequence.schema == name && sequence.owner.is_none() && sequence.dropped_by != Some(xid)
        });
        let sequences: Vec<_> = sequences.map(|(id, sequence)| (*id, sequence.name.clone())).collect();
        let tables = within.iter().map(|table| format!("table {name}.{table}"));
        let objects: Vec<_> =
            tables.chain(sequences.iter().map(|(_, own)| format!("sequence {name}.{own}"))).collect();
        if !objects.is_empty() && !cascade {
            let text = format!("cannot drop schema {name} because other objects depend on it");
            let lines = objects.iter().map(|object| format!("{object} depends on schema {name}"));
            let detail = lines.collect::<Vec<_>>().join("\n");
            let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
            return Err(SqlError::new("2BP01", text).detail(detail).hint(hint).into());
        }
        for table in within {
            self.drop_table(&[name.clone(), table], true, &[])?;
        }
        sequences.into_iter().for_each(|(id, _)| self.end_sequence(id));
        if let Some((_, dropped_by)) = self.store.schemas.get_mut(&name) {
            *dropped_by = Some(xid);
        }
        self.store.push_undo(self.session.id, Undo::DropSchema(name));
        Ok(true)
    }

    fn create_sequence(
        &mut self,
        name: &ast::ObjectName,
        if_not_exists: bool,
        options: &[ast::SequenceOptions],
    ) -> Result<String, Stop> {
        if let Some((schema, name)) = self.new_name(name, if_not_exists)? {
            let r#type = crate::value::types::Type::Int8;
            self.add_sequence(schema, name, r#type, options, None)?;
        }
        Ok("CREATE SEQUENCE".to_owned())
    }
}

/// Returns the name that a constraint has, or gets.
pub(super) fn constraint_name(given: Option<&ast::Ident>, parts: &[&str]) -> String {
    given.map_or_else(|| parts.join("_"), ident)
}
