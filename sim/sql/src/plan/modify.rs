//! `INSERT`, `UPDATE` and `DELETE`.

use std::sync::Arc;

use sqlparser::ast;
use sqlparser::ast::{
    AssignmentTarget, FromTable, OnInsert, SelectItem, SetExpr, TableFactor, TableObject, UpdateTableFromKind,
};

use super::binder::{Binder, Level, ident, name_parts};
use super::expr::{Action, Body, Expr, From, Item, Modify, Op, Query, SessionFunction, Source, Typed};
use crate::api::Column;
use crate::error::SqlError;
use crate::storage::lock::Mode;
use crate::storage::table::{ColumnDef, Identity, TableDef, TableId};
use crate::value::Value;
use crate::value::types::Type;

impl Binder<'_> {
    fn def(&self, table: TableId) -> Arc<TableDef> {
        self.store.tables.get(&table).map(|table| Arc::clone(&table.def)).unwrap_or_default()
    }

    /// Resolves an insert at the current level.
    pub(super) fn insert(&mut self, insert: &ast::Insert) -> Result<Query, SqlError> {
        let TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::unknown("inserts into anything but tables"));
        };
        let table = self.table(name)?;
        self.uses(table, Mode::RowExclusive);
        let def = self.def(table);
        let alias = insert.table_alias.as_ref().map_or_else(|| def.name.clone(), |alias| ident(&alias.alias));
        let targets = if insert.columns.is_empty() {
            (0..def.columns.len()).collect()
        } else {
            let names = insert.columns.iter().map(|name| self.target(&def, name));
            let targets = names.collect::<Result<Vec<_>, _>>()?;
            for (number, name) in insert.columns.iter().enumerate() {
                let (before, target) = (targets.iter().take(number), targets.get(number));
                if before.into_iter().any(|before| Some(before) == target) {
                    let text = format!("column \"{name}\" specified more than once");
                    let at = self.position(super::binder::span_of(name));
                    return Err(SqlError::new("42701", text).at(at));
                }
            }
            targets
        };
        if matches!(insert.overriding, Some(ast::InsertOverriding::User)) {
            return Err(SqlError::unknown("OVERRIDING USER VALUE"));
        }
        let overrides = insert.overriding.is_some();
        let (source, given) = self.insert_source(insert, &def, &targets, overrides)?;
        let mut values = Vec::new();
        for (place, column) in def.columns.iter().enumerate() {
            let given = given.iter().position(|target| *target == place);
            values.push(match given {
                Some(number) => Expr::Column { depth: 0, index: number },
                None => self.default_of(column)?,
            });
        }
        self.add_source(alias, self.columns_of(table), 0)?;
        let on_conflict = match &insert.on {
            None => None,
            Some(OnInsert::OnConflict(conflict)) => Some(self.on_conflict(&def, table, conflict)?),
            Some(_) => return Err(SqlError::syntax("syntax error at or near \"DUPLICATE\"")),
        };
        let action = Action::Insert { source: Box::new(source), values, on_conflict };
        self.modify(table, action, insert.returning.as_deref())
    }

    /// Finds the column of an assignment.
    fn target(&self, def: &TableDef, name: &ast::ObjectName) -> Result<usize, SqlError> {
        let parts = name_parts(name)?;
        let [column] = &parts[..] else {
            return Err(SqlError::unknown(format_args!("the target {name}")));
        };
        def.column(column).ok_or_else(|| {
            let text = format!("column \"{column}\" of relation \"{}\" does not exist", def.name);
            SqlError::new("42703", text).at(self.position(super::binder::span_of(name)))
        })
    }

    /// Resolves the rows of an insert; returns the columns that they are for.
    fn insert_source(
        &mut self,
        insert: &ast::Insert,
        def: &TableDef,
        targets: &[usize],
        overrides: bool,
    ) -> Result<(Query, Vec<usize>), SqlError> {
        let empty = |rows: Vec<Vec<Expr>>| Query {
            body: Body::Values(rows),
            order: Vec::new(),
            limit: None,
            offset: None,
            columns: Vec::new(),
        };
        let Some(source) = &insert.source else { return Ok((empty(vec![Vec::new()]), Vec::new())) };
        let is_simple = source.with.is_none() && source.order_by.is_none() && source.limit_clause.is_none();
        if let (SetExpr::Values(values), true) = (&*source.body, is_simple) {
            let mut rows = Vec::new();
            let width = values.rows.first().map_or(0, |row| row.content.len());
            let extra = values.rows.first().and_then(|row| row.content.get(targets.len()));
            let at = extra.map_or(0, |cell| self.position(sqlparser::ast::Spanned::span(cell)));
            let checked = self.check_width(width, targets.len(), !insert.columns.is_empty());
            checked.map_err(|error| error.at(at))?;
            for row in &values.rows {
                if row.content.len() != width {
                    return Err(SqlError::syntax("VALUES lists must all be the same length"));
                }
                let cells = row.content.iter().zip(targets).map(|(cell, target)| {
                    let column = def.columns.get(*target).ok_or_else(|| SqlError::new("XX000", "column"))?;
                    if is_default(cell) {
                        return self.default_of(column);
                    }
                    refuse_identity(column, overrides, "insert")?;
                    let typed = self.alone(|binder| binder.expr(cell))?;
                    let at = self.position(sqlparser::ast::Spanned::span(cell));
                    self.assign(typed, &column.name, column.r#type).map_err(|error| error.at(at))
                });
                rows.push(cells.collect::<Result<_, _>>()?);
            }
            return Ok((empty(rows), targets.iter().take(width).copied().collect()));
        }
        let mut query = self.alone(|binder| binder.query(source, true))?;
        self.check_width(query.columns.len(), targets.len(), !insert.columns.is_empty())?;
        let given: Vec<_> = targets.iter().take(query.columns.len()).copied().collect();
        for (number, target) in given.iter().enumerate() {
            let Some(column) = def.columns.get(*target) else { continue };
            refuse_identity(column, overrides, "insert")?;
            self.assign_output(&mut query, number, column)?;
        }
        Ok((query, given))
    }

    fn check_width(&self, width: usize, targets: usize, is_listed: bool) -> Result<(), SqlError> {
        if width > targets {
            return Err(SqlError::syntax("INSERT has more expressions than target columns"));
        }
        if width < targets && is_listed {
            return Err(SqlError::syntax("INSERT has more target columns than expressions"));
        }
        Ok(())
    }

    /// Converts a column of a query's output to that of a table.
    fn assign_output(
        &mut self,
        query: &mut Query,
        number: usize,
        column: &ColumnDef,
    ) -> Result<(), SqlError> {
        let Some(from) = query.columns.get(number).map(|column| column.r#type) else { return Ok(()) };
        if from == Type::Unknown {
            return self.settle(query, number, column.r#type);
        }
        for output in query.outputs(number) {
            let expr = std::mem::replace(output, Expr::Const(Value::Null));
            *output = self.assign(Typed { expr, r#type: from }, &column.name, column.r#type)?;
        }
        Ok(())
    }

    /// Resolves the default of a column.
    pub(crate) fn default_of(&mut self, column: &ColumnDef) -> Result<Expr, SqlError> {
        if let Some(sequence) = column.sequence {
            let sequence = Expr::Const(Value::Int(i64::from(sequence.0)));
            let next = Expr::call(Op::Session(SessionFunction::NextVal), vec![sequence]);
            return self.assign(Typed { expr: next, r#type: Type::Int8 }, &column.name, column.r#type);
        }
        let Some(default) = &column.default else { return Ok(Expr::Const(Value::Null)) };
        let typed = self.alone(|binder| {
            binder.forbid_aggregates(Some("DEFAULT expressions"));
            binder.expr(default)
        })?;
        refuse_subquery(&typed.expr, "DEFAULT expression")?;
        self.assign(typed, &column.name, column.r#type)
    }

    pub(super) fn assignments(
        &mut self,
        def: &TableDef,
        assignments: &[ast::Assignment],
    ) -> Result<Vec<(usize, Expr)>, SqlError> {
        let mut set: Vec<(usize, Expr)> = Vec::new();
        for assignment in assignments {
            let pairs: Vec<(usize, &ast::Expr)> = match (&assignment.target, &assignment.value) {
                (AssignmentTarget::ColumnName(name), value) => vec![(self.target(def, name)?, value)],
                (AssignmentTarget::Tuple(names), ast::Expr::Tuple(values)) if names.len() == values.len() => {
                    let names = names.iter().map(|name| self.target(def, name));
                    names.collect::<Result<Vec<_>, _>>()?.into_iter().zip(values).collect()
                }
                _ => return Err(SqlError::unknown("this assignment of several columns")),
            };
            for (place, value) in pairs {
                let Some(column) = def.columns.get(place) else { continue };
                if set.iter().any(|(set, _)| *set == place) {
                    let text = format!("multiple assignments to same column \"{}\"", column.name);
                    return Err(SqlError::syntax(text));
                }
                let value = if is_default(value) {
                    self.default_of(column)?
                } else {
                    refuse_identity(column, false, "update")?;
                    let at = self.position(sqlparser::ast::Spanned::span(value));
                    let typed = self.expr(value)?;
                    self.assign(typed, &column.name, column.r#type).map_err(|error| error.at(at))?
                };
                set.push((place, value));
            }
        }
        Ok(set)
    }

    /// Returns the target of an update or a delete as a source whose row comes first.
    fn target_source(&mut self, relation: &TableFactor) -> Result<(TableId, Item), SqlError> {
        let TableFactor::Table { name, alias, args: None, .. } = relation else {
            return Err(SqlError::unknown(format_args!("changes of {relation}")));
        };
        let table = self.table(name)?;
        self.uses(table, Mode::RowExclusive);
        let name = name_parts(name)?.pop().unwrap_or_default();
        let alias = alias.as_ref().map_or(name, |alias| ident(&alias.name));
        let columns = self.columns_of(table);
        let width = columns.len();
        self.add_source(alias, columns, 0)?;
        Ok((
            table,
            Item { source: Source::Table(table), offset: 0, width, left_join: None, is_lateral: false },
        ))
    }

    /// Resolves an update at the current level.
    pub(super) fn update(&mut self, update: &ast::Update) -> Result<Query, SqlError> {
        refuse_limit(&update.order_by, update.limit.as_ref())?;
        if !update.table.joins.is_empty() {
            return Err(SqlError::unknown("this clause of UPDATE"));
        }
        let (table, target) = self.target_source(&update.table.relation)?;
        let others = match &update.from {
            None => &[][..],
            Some(UpdateTableFromKind::AfterSet(others) | UpdateTableFromKind::BeforeSet(others)) => others,
        };
        let from = self.changed_rows(target, others, update.selection.as_ref())?;
        self.forbid_aggregates(Some("UPDATE"));
        let set = self.assignments(&self.def(table), &update.assignments);
        self.forbid_aggregates(None);
        let set = set?;
        self.modify(table, Action::Update { from, set }, update.returning.as_deref())
    }

    /// Resolves a delete at the current level.
    pub(super) fn delete(&mut self, delete: &ast::Delete) -> Result<Query, SqlError> {
        let (FromTable::WithFromKeyword(targets) | FromTable::WithoutKeyword(targets)) = &delete.from;
        let [target] = &targets[..] else { return Err(SqlError::unknown("deletes from several tables")) };
        refuse_limit(&delete.order_by, delete.limit.as_ref())?;
        if !target.joins.is_empty() || !delete.tables.is_empty() {
            return Err(SqlError::unknown("this clause of DELETE"));
        }
        let (table, target) = self.target_source(&target.relation)?;
        let others = delete.using.as_deref().unwrap_or_default();
        let from = self.changed_rows(target, others, delete.selection.as_ref())?;
        self.modify(table, Action::Delete { from }, delete.returning.as_deref())
    }

    /// Resolves the other sources and the condition of an update or a delete; the target comes last.
    fn changed_rows(
        &mut self,
        target: Item,
        others: &[ast::TableWithJoins],
        selection: Option<&ast::Expr>,
    ) -> Result<From, SqlError> {
        let mut from = From { width: target.width, ..From::default() };
        self.from(&mut from, others)?;
        let joined = std::mem::take(&mut from.conditions);
        from.items.push(target);
        for condition in joined {
            self.add_conditions(&mut from, condition.expr);
        }
        if let Some(selection) = selection {
            let condition = self.where_clause(selection)?;
            self.add_conditions(&mut from, condition);
        }
        Ok(from)
    }

    fn modify(
        &mut self,
        table: TableId,
        action: Action,
        returning: Option<&[SelectItem]>,
    ) -> Result<Query, SqlError> {
        self.forbid_aggregates(Some("RETURNING"));
        let bound = returning.map(|items| self.projection(items)).transpose();
        self.forbid_aggregates(None);
        let (returning, columns): (_, Vec<Column>) = match bound? {
            Some((output, columns)) => (Some(output), columns),
            None => (None, Vec::new()),
        };
        let body = Body::Modify(Box::new(Modify { table, action, returning }));
        Ok(Query { body, order: Vec::new(), limit: None, offset: None, columns })
    }

    /// Resolves a check of the rows of a table.
    pub(crate) fn table_condition(
        &mut self,
        table: &TableDef,
        condition: &ast::Expr,
    ) -> Result<Expr, SqlError> {
        let bound = self.row_condition(table, condition, "check constraints")?;
        refuse_subquery(&bound, "check constraint")?;
        Ok(bound)
    }

    /// Resolves the condition of an index, which must have one answer for a row at all times.
    pub(crate) fn index_predicate(
        &mut self,
        table: &TableDef,
        condition: &ast::Expr,
    ) -> Result<Expr, SqlError> {
        let bound = self.row_condition(table, condition, "index predicates")?;
        refuse_subquery(&bound, "index predicate")?;
        let mut is_immutable = true;
        bound.visit(&mut |part| match part {
            Expr::Call { op: Op::Session(_), .. } => is_immutable = false,
            // The time zone of the session decides.
            Expr::Call { op: Op::Cast { from, to, .. }, .. } => {
                is_immutable &= (*from == Type::Timestamptz) == (to.r#type == Type::Timestamptz);
            }
            _ => {}
        });
        if !is_immutable {
            let text = "functions in index predicate must be marked IMMUTABLE";
            return Err(SqlError::new("42P17", text));
        }
        Ok(bound)
    }

    fn row_condition(
        &mut self,
        table: &TableDef,
        condition: &ast::Expr,
        clause: &'static str,
    ) -> Result<Expr, SqlError> {
        let columns = table.columns.iter().map(|c| (c.name.clone(), c.r#type.r#type)).collect();
        let (bound, _) = self.within(Level::default(), |binder| {
            binder.add_source(table.name.clone(), columns, 0)?;
            binder.forbid_aggregates(Some(clause));
            let typed = binder.expr(condition)?;
            binder.condition(typed, "CHECK")
        })?;
        Ok(bound)
    }
}

fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(name) if name.quote_style.is_none()
        && name.value.eq_ignore_ascii_case("default"))
}

fn refuse_subquery(expr: &Expr, place: &str) -> Result<(), SqlError> {
    let mut has_subquery = false;
    expr.visit(&mut |part| has_subquery |= matches!(part, Expr::Subquery(_)));
    if !has_subquery {
        return Ok(());
    }
    Err(SqlError::new("0A000", format!("cannot use subquery in {place}")))
}

/// Refuses the order and the limit of a change, which only the parser knows.
fn refuse_limit(order: &[ast::OrderByExpr], limit: Option<&ast::Expr>) -> Result<(), SqlError> {
    let word = match (order, limit) {
        ([], None) => return Ok(()),
        ([], Some(_)) => "LIMIT",
        _ => "ORDER",
    };
    Err(SqlError::syntax(format!("syntax error at or near \"{word}\"")))
}

fn refuse_identity(column: &ColumnDef, overrides: bool, what: &str) -> Result<(), SqlError> {
    if column.identity != Some(Identity::Always) || overrides {
        return Ok(());
    }
    let name = &column.name;
    let detail = format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.");
    if what == "update" {
        let text = format!("column \"{name}\" can only be updated to DEFAULT");
        return Err(SqlError::new("428C9", text).detail(detail));
    }
    let text = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
    Err(SqlError::new("428C9", text).detail(detail).hint("Use OVERRIDING SYSTEM VALUE to override."))
}
