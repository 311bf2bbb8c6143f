//! `UPDATE` and `DELETE`, and what changes return.

use super::run::{Env, Rows, Run, out_of_step};
use super::scan::Tuple;
use crate::plan::expr::{Action, Body, Expr, From, Modify, Query};
use crate::session::Entry;
use crate::storage::lock::RowMode;
use crate::storage::rows::{Locked, Policy};
use crate::storage::stop::Stop;
use crate::storage::table::{TableId, VersionId};
use crate::value::Value;

impl Run<'_> {
    /// Runs a whole statement; returns its rows, and how many rows it has changed or returns.
    pub(crate) fn statement(&mut self, query: &Query) -> Result<(u64, Rows), Stop> {
        let result = match &query.body {
            Body::Modify(modify) => self.modify(modify)?,
            _ => {
                let rows = self.query(query, None)?;
                (rows.len() as u64, rows)
            }
        };
        // Changes that nothing has read run to their end.
        for id in 0..self.ctes.len() {
            let is_change = self.ctes.get(id).is_some_and(|cte| matches!(cte.query.body, Body::Modify(_)));
            if is_change {
                self.cte(id)?;
            }
        }
        self.check_references()?;
        Ok(result)
    }

    /// Changes rows; returns how many, and what `RETURNING` makes of them.
    pub(super) fn modify(&mut self, modify: &Modify) -> Result<(u64, Rows), Stop> {
        match &modify.action {
            Action::Insert { source, values, on_conflict } => {
                self.insert(modify, source, values, on_conflict.as_ref())
            }
            Action::Update { from, set } => self.update(modify, from, set),
            Action::Delete { from } => self.delete(modify, from),
        }
    }

    /// Evaluates `RETURNING` for a row.
    pub(super) fn returned(&mut self, modify: &Modify, row: &[Value], rows: &mut Rows) -> Result<(), Stop> {
        if let Some(returning) = &modify.returning {
            let env = Env { row, outer: None };
            rows.push(returning.iter().map(|expr| self.eval(expr, &env)).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    fn update(&mut self, modify: &Modify, from: &From, set: &[(usize, Expr)]) -> Result<(u64, Rows), Stop> {
        let (mut count, mut rows) = (0, Vec::new());
        for mut tuple in self.join(from, usize::MAX, None)? {
            let mut values = self.assigned(modify.table, set, &tuple.values)?;
            let mode = self.update_mode(modify.table, &tuple.values, &values);
            let Some((version, is_moved)) = self.lock_target(modify.table, from, &mut tuple, mode)? else {
                continue;
            };
            if is_moved {
                values = self.assigned(modify.table, set, &tuple.values)?;
            }
            let old: Vec<_> = tuple.values.iter().take(values.len()).cloned().collect();
            self.replace(modify.table, version, &old, values.clone())?;
            count += 1;
            tuple.values.iter_mut().zip(values).for_each(|(place, value)| *place = value);
            self.returned(modify, &tuple.values, &mut rows)?;
        }
        Ok((count, rows))
    }

    /// Returns the lock of an update: a change of a key excludes references to the row.
    pub(super) fn update_mode(&self, table: TableId, old: &[Value], new: &[Value]) -> RowMode {
        let keys = self.def(table).key_columns();
        let is_key_changed = keys.iter().any(|place| old.get(*place) != new.get(*place));
        if is_key_changed { RowMode::Update } else { RowMode::NoKeyUpdate }
    }

    /// Returns the new values of a row.
    pub(super) fn assigned(
        &mut self,
        table: TableId,
        set: &[(usize, Expr)],
        row: &[Value],
    ) -> Result<Vec<Value>, Stop> {
        let width = self.def(table).columns.len();
        let mut values: Vec<_> = row.iter().take(width).cloned().collect();
        for (place, expr) in set {
            let value = self.eval(expr, &Env { row, outer: None })?;
            if let Some(old) = values.get_mut(*place) {
                *old = value;
            }
        }
        Ok(values)
    }

    /// Checks and stores the new version of a locked row.
    pub(super) fn replace(
        &mut self,
        table: TableId,
        version: VersionId,
        old: &[Value],
        values: Vec<Value>,
    ) -> Result<(), Stop> {
        self.check_row(table, &values)?;
        let covered = self.covered(table, &values)?;
        let new = values.clone();
        self.once(|run| {
            run.store.update(run.actor, table, version, values, &covered)?;
            Ok(Entry::Done)
        })?;
        self.refers(table, Some(old), &new);
        let keys = self.def(table).key_columns();
        if keys.iter().any(|place| old.get(*place) != new.get(*place)) {
            self.was_referred(table, old, false);
        }
        Ok(())
    }

    fn delete(&mut self, modify: &Modify, from: &From) -> Result<(u64, Rows), Stop> {
        let (mut count, mut rows) = (0, Vec::new());
        for mut tuple in self.join(from, usize::MAX, None)? {
            let locked = self.lock_target(modify.table, from, &mut tuple, RowMode::Update)?;
            let Some((version, _)) = locked else { continue };
            self.once(|run| {
                run.store.delete(run.actor, modify.table, version)?;
                Ok(Entry::Done)
            })?;
            count += 1;
            let width = self.def(modify.table).columns.len();
            let old: Vec<_> = tuple.values.iter().take(width).cloned().collect();
            self.was_referred(modify.table, &old, true);
            self.returned(modify, &tuple.values, &mut rows)?;
        }
        Ok((count, rows))
    }

    /// Locks the row that a statement changes, which is the last item; `None` if it no longer belongs to the
    /// rows of the statement. Returns whether it has changed since the snapshot.
    fn lock_target(
        &mut self,
        table: TableId,
        from: &From,
        tuple: &mut Tuple,
        mode: RowMode,
    ) -> Result<Option<(VersionId, bool)>, Stop> {
        let target = from.items.len().saturating_sub(1);
        let Some(version) = tuple.versions.get(target).copied().flatten() else { return Ok(None) };
        let entry = self.once(|run| {
            run.store.lock_row(run.actor, table, version, mode, Policy::Wait).map(Entry::Locked)
        })?;
        match entry {
            Entry::Locked(Locked::Same) => Ok(Some((version, false))),
            Entry::Locked(Locked::Moved(version)) => {
                self.move_to(from, tuple, target, version);
                Ok(self.still_holds(from, tuple, None)?.then_some((version, true)))
            }
            Entry::Locked(_) => Ok(None),
            _ => Err(out_of_step()),
        }
    }
}
