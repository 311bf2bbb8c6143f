//! Constraints: NOT NULL and CHECK of a row at once, foreign keys at the end of the statement.

use std::sync::Arc;

use super::run::{Env, Reference, Run, TableRules, out_of_step};
use crate::error::SqlError;
use crate::plan::binder::Binder;
use crate::session::Entry;
use crate::storage::lock::{Mode, RowMode, Target};
use crate::storage::rows::{Actor, Locked, Policy, named_values, of_lock};
use crate::storage::stop::Stop;
use crate::storage::table::{ForeignKey, IndexDef, OnDelete, TableDef, TableId, Version, VersionId};
use crate::value::Value;

impl Run<'_> {
    pub(super) fn def(&self, table: TableId) -> Arc<TableDef> {
        self.store.tables.get(&table).map(|table| Arc::clone(&table.def)).unwrap_or_default()
    }

    /// Resolves the conditions of a table, once in a statement.
    fn rules(&mut self, table: TableId) -> Result<Arc<TableRules>, Stop> {
        if let Some(rules) = self.rules.get(&table) {
            return Ok(Arc::clone(rules));
        }
        let def = self.def(table);
        let mut binder = Binder::new(self.store, self.viewer(), "", Vec::new());
        let checks = def
            .checks
            .iter()
            .map(|check| Ok((check.name.clone(), binder.table_condition(&def, &check.condition)?)));
        let mut checks = checks.collect::<Result<Vec<_>, SqlError>>()?;
        // In the order in which PostgreSQL checks them.
        checks.sort_by(|(a, _), (b, _)| a.cmp(b));
        let predicates = def.indexes.iter().map(|index| {
            let predicate = index.predicate.as_ref();
            predicate.map(|predicate| binder.index_predicate(&def, predicate)).transpose()
        });
        let predicates = predicates.collect::<Result<_, SqlError>>()?;
        let rules = Arc::new(TableRules { checks, predicates });
        self.rules.insert(table, Arc::clone(&rules));
        Ok(rules)
    }

    /// Forgets the conditions of a table, which have changed.
    pub(crate) fn forget_rules(&mut self, table: TableId) {
        self.rules.remove(&table);
    }

    /// Returns which indexes have the row.
    pub(crate) fn covered(&mut self, table: TableId, values: &[Value]) -> Result<Vec<bool>, Stop> {
        let rules = self.rules(table)?;
        let env = Env { row: values, outer: None };
        let covers = rules.predicates.iter().map(|predicate| match predicate {
            Some(predicate) => self.holds(predicate, &env),
            None => Ok(true),
        });
        covers.collect()
    }

    /// Checks NOT NULL and CHECK.
    pub(crate) fn check_row(&mut self, table: TableId, values: &[Value]) -> Result<(), Stop> {
        let def = self.def(table);
        for (column, value) in def.columns.iter().zip(values) {
            if column.not_null && value.is_null() {
                let text = format!(
                    "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                    column.name, def.name
                );
                let error = SqlError::new("23502", text).detail(failing(values));
                return Err(error
                    .with(|fields| {
                        fields.schema = Some(def.schema.clone());
                        fields.table = Some(def.name.clone());
                        fields.column = Some(column.name.clone());
                    })
                    .into());
            }
        }
        let rules = self.rules(table)?;
        for (name, condition) in &rules.checks {
            let env = Env { row: values, outer: None };
            if matches!(self.eval(condition, &env)?, Value::Bool(false)) {
                let text =
                    format!("new row for relation \"{}\" violates check constraint \"{name}\"", def.name);
                let error = SqlError::new("23514", text).detail(failing(values));
                return Err(of_constraint(error, &def, name).into());
            }
        }
        Ok(())
    }

    /// Notes that a new row refers to others; only if the columns have changed.
    pub(crate) fn refers(&mut self, table: TableId, old: Option<&[Value]>, values: &[Value]) {
        let def = self.def(table);
        let is_changed = |key: &ForeignKey| {
            old.is_none_or(|old| key.columns.iter().any(|place| old.get(*place) != values.get(*place)))
        };
        if def.foreign.iter().any(is_changed) {
            self.references.push(Reference::Child { table, values: values.to_vec() });
        }
    }

    /// Notes that a row is gone, or has another key.
    pub(super) fn was_referred(&mut self, table: TableId, old: &[Value], is_deleted: bool) {
        let is_parent = |table_def: &TableDef| table_def.foreign.iter().any(|key| key.parent == table);
        if self.store.tables.values().any(|other| is_parent(&other.def)) {
            self.references.push(Reference::Parent { table, values: old.to_vec(), is_deleted });
        }
    }

    /// Checks the foreign keys that the statement has touched.
    pub(crate) fn check_references(&mut self) -> Result<(), Stop> {
        while !self.references.is_empty() {
            for reference in std::mem::take(&mut self.references) {
                match reference {
                    Reference::Child { table, values } => self.check_child(table, &values)?,
                    Reference::Parent { table, values, is_deleted } => {
                        self.check_parent(table, &values, is_deleted)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns an actor that sees all that is committed, and this statement.
    fn latest(&self) -> Actor {
        let snapshot = self.store.latest(self.session.id).unwrap_or(self.actor.snapshot);
        Actor { session: self.session.id, snapshot, is_repeatable: self.actor.is_repeatable }
    }

    /// Returns the versions whose columns have the values, by the latest snapshot.
    fn having(&self, table: TableId, columns: &[usize], key: &[Value]) -> Vec<VersionId> {
        let snapshot = self.latest().snapshot;
        let Some(table) = self.store.tables.get(&table) else { return Vec::new() };
        let is_it = |values: &[Value]| {
            columns.iter().zip(key).all(|(place, wanted)| values.get(*place) == Some(wanted))
        };
        let is_found = |version: &Version| version.is_visible(&snapshot) && is_it(&table.values(version));
        let is_whole = |index: &IndexDef| index.columns == columns && index.predicate.is_none();
        let place = table.def.indexes.iter().position(is_whole);
        if let Some(entries) = place.and_then(|place| table.data.entries.get(place)) {
            let ids = entries.0.get(key).into_iter().flatten();
            return ids.filter(|id| table.data.versions.get(id).is_some_and(is_found)).copied().collect();
        }
        table.data.versions.iter().filter(|(_, version)| is_found(version)).map(|(id, _)| *id).collect()
    }

    fn check_child(&mut self, table: TableId, values: &[Value]) -> Result<(), Stop> {
        let def = self.def(table);
        for key in &def.foreign {
            let wanted = key.columns.iter().map(|place| values.get(*place).cloned().unwrap_or(Value::Null));
            let wanted: Vec<_> = wanted.collect();
            if wanted.contains(&Value::Null) {
                continue;
            }
            let is_found = self.lock_referred(key.parent, &key.parent_columns, &wanted)?;
            if !is_found {
                let text = format!(
                    "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                    def.name, key.name
                );
                let parent = self.def(key.parent);
                let detail = format!(
                    "Key {} is not present in table \"{}\".",
                    named_values(&def, &key.columns, &wanted),
                    parent.name
                );
                return Err(
                    of_constraint(SqlError::new("23503", text).detail(detail), &def, &key.name).into()
                );
            }
        }
        Ok(())
    }

    /// Locks a row whose columns have the values against changes of them; returns whether there is one.
    fn lock_referred(&mut self, table: TableId, columns: &[usize], key: &[Value]) -> Result<bool, Stop> {
        self.lock(Target::Table(table), Mode::RowShare)?;
        for version in self.found(table, columns, key)? {
            let entry = self.once(|run| {
                let (actor, mode) = (run.latest(), RowMode::KeyShare);
                let locked = run.store.lock_row(actor, table, version, mode, Policy::Wait);
                locked.map(Entry::Locked).map_err(of_lock)
            })?;
            let version = match entry {
                Entry::Locked(Locked::Same) => return Ok(true),
                Entry::Locked(Locked::Moved(version)) => version,
                Entry::Locked(_) => continue,
                _ => return Err(out_of_step()),
            };
            let values = self.values_of(table, version).unwrap_or_default();
            if columns.iter().zip(key).all(|(place, wanted)| values.get(*place) == Some(wanted)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns what `having` finds, the same also if the statement waits.
    fn found(&mut self, table: TableId, columns: &[usize], key: &[Value]) -> Result<Vec<VersionId>, Stop> {
        match self.once(|run| Ok(Entry::Versions(run.having(table, columns, key))))? {
            Entry::Versions(found) => Ok(found),
            _ => Err(out_of_step()),
        }
    }

    fn check_parent(&mut self, table: TableId, values: &[Value], is_deleted: bool) -> Result<(), Stop> {
        let children: Vec<_> = self
            .store
            .tables
            .iter()
            .flat_map(|(child, found)| {
                let keys = found.def.foreign.iter().filter(|key| key.parent == table);
                keys.map(|key| (*child, key.clone())).collect::<Vec<_>>()
            })
            .collect();
        for (child, key) in children {
            let old = key.parent_columns.iter().map(|place| values.get(*place).cloned());
            let old: Vec<_> = old.map(|value| value.unwrap_or(Value::Null)).collect();
            if old.contains(&Value::Null) || !self.found(table, &key.parent_columns, &old)?.is_empty() {
                continue;
            }
            if key.on_delete == OnDelete::Refuse || !is_deleted {
                if self.lock_referred(child, &key.columns, &old)? {
                    return Err(self.still_referenced(table, child, &key, &old).into());
                }
                continue;
            }
            self.lock(Target::Table(child), Mode::RowExclusive)?;
            for row in self.found(child, &key.columns, &old)? {
                self.follow(child, &key, row)?;
            }
        }
        Ok(())
    }

    fn still_referenced(&self, table: TableId, child: TableId, key: &ForeignKey, old: &[Value]) -> SqlError {
        let (parent, child) = (self.def(table), self.def(child));
        let text = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            parent.name, key.name, child.name
        );
        let named = named_values(&parent, &key.parent_columns, old);
        let detail = format!("Key {named} is still referenced from table \"{}\".", child.name);
        of_constraint(SqlError::new("23503", text).detail(detail), &child, &key.name)
    }

    /// Deletes a row that refers to a deleted one, or sets its reference to NULL.
    fn follow(&mut self, child: TableId, key: &ForeignKey, row: VersionId) -> Result<(), Stop> {
        let actor = Actor { snapshot: self.actor.snapshot, ..self.latest() };
        let mode = RowMode::Update;
        let entry = self.once(|run| {
            run.store.lock_row(run.latest(), child, row, mode, Policy::Wait).map(Entry::Locked)
        })?;
        let version = match entry {
            Entry::Locked(Locked::Same) => row,
            Entry::Locked(Locked::Moved(version)) => version,
            Entry::Locked(_) => return Ok(()),
            _ => return Err(out_of_step()),
        };
        let Some(old) = self.values_of(child, version) else { return Ok(()) };
        if key.on_delete == OnDelete::Cascade {
            self.once(|run| {
                run.store.delete(actor, child, version)?;
                Ok(Entry::Done)
            })?;
            self.was_referred(child, &old, true);
            return Ok(());
        }
        let mut values = old.clone();
        for place in &key.columns {
            if let Some(value) = values.get_mut(*place) {
                *value = Value::Null;
            }
        }
        self.check_row(child, &values)?;
        let covered = self.covered(child, &values)?;
        self.once(|run| {
            run.store.update(actor, child, version, values, &covered)?;
            Ok(Entry::Done)
        })?;
        Ok(())
    }

    pub(super) fn values_of(&self, table: TableId, version: VersionId) -> Option<Vec<Value>> {
        let table = self.store.tables.get(&table)?;
        table.data.versions.get(&version).map(|version| table.values(version))
    }
}

fn of_constraint(error: SqlError, def: &TableDef, name: &str) -> SqlError {
    error.with(|fields| {
        fields.schema = Some(def.schema.clone());
        fields.table = Some(def.name.clone());
        fields.constraint = Some(name.to_owned());
    })
}

/// Prints a row that breaks a constraint.
fn failing(values: &[Value]) -> String {
    const LONGEST: usize = 64;
    let values = values.iter().map(|value| {
        let text = value.text().unwrap_or("null".to_owned());
        let cut: String = text.chars().take(LONGEST).collect();
        if cut.len() < text.len() { format!("{cut}...") } else { text }
    });
    format!("Failing row contains ({}).", values.collect::<Vec<_>>().join(", "))
}
