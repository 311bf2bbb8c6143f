//! `INSERT`, and `ON CONFLICT`.

use super::run::{Env, Rows, Run, out_of_step};
use crate::error::SqlError;
use crate::plan::expr::{DoUpdate, Expr, Modify, OnConflict, Query};
use crate::session::Entry;
use crate::storage::lock::RowMode;
use crate::storage::rows::{Conflict, Locked, Policy, concurrent};
use crate::storage::stop::Stop;
use crate::storage::table::TableId;
use crate::storage::transaction::Stamp;
use crate::value::Value;

impl Run<'_> {
    pub(super) fn insert(
        &mut self,
        modify: &Modify,
        source: &Query,
        values: &[Expr],
        on_conflict: Option<&OnConflict>,
    ) -> Result<(u64, Rows), Stop> {
        let (mut count, mut rows) = (0, Vec::new());
        for row in self.query(source, None)? {
            let env = Env { row: &row, outer: None };
            let values = values.iter().map(|expr| self.eval(expr, &env)).collect::<Result<Vec<_>, _>>()?;
            if let Some(stored) = self.insert_row(modify.table, values, on_conflict)? {
                count += 1;
                self.returned(modify, &stored, &mut rows)?;
            }
        }
        Ok((count, rows))
    }

    /// Inserts a row, or does what `ON CONFLICT` says; returns the row that is stored, if there is one.
    fn insert_row(
        &mut self,
        table: TableId,
        values: Vec<Value>,
        on_conflict: Option<&OnConflict>,
    ) -> Result<Option<Vec<Value>>, Stop> {
        self.check_row(table, &values)?;
        let covered = self.covered(table, &values)?;
        loop {
            if let Some(rule) = on_conflict {
                let arbiters = arbiters(&covered, rule);
                let entry = self.once(|run| {
                    let conflict = run.store.conflict(run.actor, table, &values, &arbiters, None)?;
                    Ok(Entry::Conflict(conflict))
                })?;
                match entry {
                    Entry::Conflict(None) => {}
                    Entry::Conflict(Some(conflict)) => match self.resolve(table, &values, conflict, rule)? {
                        Resolved::Again => continue,
                        Resolved::Nothing => return Ok(None),
                        Resolved::Updated(row) => return Ok(Some(row)),
                    },
                    _ => return Err(out_of_step()),
                }
            }
            if self.store_row(table, &values, &covered, on_conflict)? {
                break;
            }
        }
        self.refers(table, None, &values);
        Ok(Some(values))
    }

    /// Stores a row that has no conflict; returns whether none has come while the insert waited on an index
    /// that is no arbiter.
    fn store_row(
        &mut self,
        table: TableId,
        values: &[Value],
        covered: &[bool],
        on_conflict: Option<&OnConflict>,
    ) -> Result<bool, Stop> {
        let entry = self.once(|run| {
            if let Some(rule) = on_conflict {
                let conflict = run.store.conflict(run.actor, table, values, covered, None)?;
                let arbiters = arbiters(covered, rule);
                if conflict.is_some_and(|found| arbiters.get(found.index).copied().unwrap_or(false)) {
                    return Ok(Entry::Flag(false));
                }
            }
            run.store.insert(run.actor, table, values.to_vec(), covered)?;
            Ok(Entry::Done)
        })?;
        Ok(matches!(entry, Entry::Done))
    }

    /// Does nothing about a conflict, or locks the row in the way and updates it.
    fn resolve(
        &mut self,
        table: TableId,
        excluded: &[Value],
        conflict: Conflict,
        rule: &OnConflict,
    ) -> Result<Resolved, Stop> {
        let version = conflict.version;
        let is_seen = self.store.version(table, version).is_some_and(|found| {
            found.is_visible(&self.actor.snapshot) || self.is_of_this_command(found.created)
        });
        let Some(DoUpdate { set, condition }) = &rule.update else {
            if self.actor.is_repeatable && !is_seen {
                return Err(concurrent("update").into());
            }
            return Ok(Resolved::Nothing);
        };
        let created = self.store.version(table, version).map(|found| found.created);
        if created.is_some_and(|created| self.is_of_this_command(created)) && self.at == self.journal.len() {
            let text = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            let hint = "Ensure that no rows proposed for insertion within the same command have duplicate \
                        constrained values.";
            return Err(SqlError::new("21000", text).hint(hint).into());
        }
        let keys = self.def(table).key_columns();
        let is_key_set = set.iter().any(|(place, _)| keys.contains(place));
        let mode = if is_key_set { RowMode::Update } else { RowMode::NoKeyUpdate };
        let entry = self.once(|run| {
            run.store.lock_row(run.actor, table, version, mode, Policy::Wait).map(Entry::Locked)
        })?;
        match entry {
            Entry::Locked(Locked::Same) => {}
            Entry::Locked(_) => return Ok(Resolved::Again),
            _ => return Err(out_of_step()),
        }
        if self.actor.is_repeatable && !is_seen {
            return Err(concurrent("update").into());
        }
        let Some(old) = self.values_of(table, version) else { return Ok(Resolved::Again) };
        let row: Vec<_> = old.iter().chain(excluded).cloned().collect();
        let is_updated = match condition {
            Some(condition) => self.holds(condition, &Env { row: &row, outer: None })?,
            None => true,
        };
        if !is_updated {
            return Ok(Resolved::Nothing);
        }
        let values = self.assigned(table, set, &row)?;
        self.replace(table, version, &old, values.clone())?;
        Ok(Resolved::Updated(values))
    }

    fn is_of_this_command(&self, stamp: Stamp) -> bool {
        let snapshot = self.actor.snapshot;
        matches!(stamp, Stamp::Open { xid, command } if xid == snapshot.xid && command >= snapshot.command)
    }
}

/// Returns which of the indexes that have the row are those whose conflicts the rule is for.
fn arbiters(covered: &[bool], rule: &OnConflict) -> Vec<bool> {
    let is_arbiter = |number: usize| rule.arbiters.as_ref().is_none_or(|arbiters| arbiters.contains(&number));
    covered.iter().enumerate().map(|(number, covers)| *covers && is_arbiter(number)).collect()
}

/// What came of a conflict.
enum Resolved {
    /// The row in the way has changed meanwhile: look again.
    Again,
    Nothing,
    Updated(Vec<Value>),
}
