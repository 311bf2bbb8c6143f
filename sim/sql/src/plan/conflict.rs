//! `ON CONFLICT`.

use sqlparser::ast;
use sqlparser::ast::{ConflictTarget, OnConflictAction};

use super::binder::{Binder, ident, name_parts};
use super::expr::{DoUpdate, OnConflict};
use crate::error::SqlError;
use crate::storage::table::{TableDef, TableId};

impl Binder<'_> {
    /// Resolves what an insert does about rows that are in its way.
    pub(super) fn on_conflict(
        &mut self,
        def: &TableDef,
        table: TableId,
        conflict: &ast::OnConflict,
    ) -> Result<OnConflict, SqlError> {
        let arbiters = match &conflict.conflict_target {
            None => None,
            Some(ConflictTarget::OnConstraint(name)) => {
                let wanted = name_parts(name)?.pop().unwrap_or_default();
                let found = def.indexes.iter().position(|index| index.name == wanted && index.is_constraint);
                let missing = || {
                    let text = format!("constraint \"{wanted}\" for table \"{}\" does not exist", def.name);
                    SqlError::new("42704", text)
                };
                Some(vec![found.ok_or_else(missing)?])
            }
            Some(ConflictTarget::Columns { columns, predicate }) => {
                Some(self.arbiters(def, columns, predicate.as_ref())?)
            }
        };
        let update = match &conflict.action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(_) if arbiters.is_none() => {
                return Err(SqlError::syntax(
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                )
                .hint("For example, ON CONFLICT (column_name)."));
            }
            OnConflictAction::DoUpdate(update) => {
                self.add_source("excluded".to_owned(), self.columns_of(table), def.columns.len())?;
                self.forbid_aggregates(Some("UPDATE"));
                let set = self.assignments(def, &update.assignments);
                self.forbid_aggregates(None);
                let set = set?;
                let condition = match &update.selection {
                    Some(selection) => Some(self.where_clause(selection)?),
                    None => None,
                };
                if let Some(level) = self.levels.last_mut() {
                    level.sources.pop();
                }
                Some(DoUpdate { set, condition })
            }
        };
        Ok(OnConflict { arbiters, update })
    }

    /// Finds the unique indexes on exactly these columns.
    fn arbiters(
        &self,
        def: &TableDef,
        columns: &[ast::Ident],
        predicate: Option<&ast::Expr>,
    ) -> Result<Vec<usize>, SqlError> {
        let mut wanted = Vec::new();
        for name in columns {
            let name = ident(name);
            let missing = || SqlError::new("42703", format!("column \"{name}\" does not exist"));
            wanted.push(def.column(&name).ok_or_else(missing)?);
        }
        wanted.sort_unstable();
        wanted.dedup();
        let found = def.indexes.iter().enumerate().filter(|(_, index)| {
            let mut columns = index.columns.clone();
            columns.sort_unstable();
            let implied = match (&index.predicate, predicate) {
                (None, _) => true,
                (Some(own), Some(given)) => own.to_string() == given.to_string(),
                (Some(_), None) => false,
            };
            index.is_unique && columns == wanted && implied
        });
        let found: Vec<_> = found.map(|(number, _)| number).collect();
        if found.is_empty() {
            let text = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(SqlError::new("42P10", text));
        }
        Ok(found)
    }
}
