//! Queries: common table expressions, bodies, orders and limits.

use std::sync::Arc;

use sqlparser::ast;
use sqlparser::ast::{LimitClause, OrderByKind, SetExpr, SetOperator, SetQuantifier, Statement};

use super::binder::{Binder, CteScope, Level, ident};
use super::casts::{Context, common_type};
use super::expr::{Body, Cte, Expr, Op, Query, SortBy, SortKey, Typed};
use crate::api::Column;
use crate::error::SqlError;
use crate::storage::table::Modified;
use crate::value::Value;
use crate::value::types::Type;

/// Returns whether a key of an order is the greatest first.
pub(super) fn is_descending(options: &ast::OrderByOptions) -> bool {
    options.sort.as_ref().is_some_and(|sort| matches!(sort, ast::OrderBySort::Desc))
}

/// Returns the keys of an order.
pub(super) fn order_keys(order: Option<&ast::OrderBy>) -> Result<&[ast::OrderByExpr], SqlError> {
    match order.map(|order| &order.kind) {
        None => Ok(&[]),
        Some(OrderByKind::Expressions(keys)) => {
            let is_using =
                |key: &ast::OrderByExpr| matches!(key.options.sort, Some(ast::OrderBySort::Using(_)));
            if keys.iter().any(is_using) {
                return Err(SqlError::unknown("ORDER BY … USING"));
            }
            Ok(keys)
        }
        Some(OrderByKind::All(_)) => Err(SqlError::syntax("syntax error at or near \"ALL\"")),
    }
}

impl Binder<'_> {
    /// Resolves a query that sees no rows of others. `keeps_unknown`: literals and parameters without a type
    /// stay so, for an insert.
    pub(super) fn query(&mut self, query: &ast::Query, keeps_unknown: bool) -> Result<Query, SqlError> {
        let unsupported = query.fetch.is_some()
            || query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty();
        if unsupported {
            return Err(SqlError::unknown("this clause of a query; take LIMIT in place of FETCH"));
        }
        let names = self.cte_names.len();
        if let Some(with) = &query.with {
            self.with(with)?;
        }
        let bound = self.body(query);
        self.cte_names.truncate(names);
        let mut bound = bound?;
        if !keeps_unknown {
            for number in 0..bound.columns.len() {
                if bound.columns.get(number).is_some_and(|column| column.r#type == Type::Unknown) {
                    self.settle(&mut bound, number, Modified::plain(Type::Text))?;
                }
            }
        }
        Ok(bound)
    }

    /// Resolves a query that may read the rows of outer queries; returns its level as well.
    pub(super) fn nested_query(&mut self, query: &ast::Query) -> Result<(Query, Level), SqlError> {
        let (query, level) = self.within(Level::default(), |binder| binder.query(query, false))?;
        Ok((query, level))
    }

    fn with(&mut self, with: &ast::With) -> Result<(), SqlError> {
        if with.recursive {
            return Err(SqlError::unknown("WITH RECURSIVE"));
        }
        for cte in &with.cte_tables {
            // It may not read rows of outer queries here: it runs once for the whole statement.
            let query = self.alone(|binder| binder.query(&cte.query, false))?;
            let names = cte.alias.columns.iter().map(|column| ident(&column.name));
            let names: Vec<_> = names.collect();
            let columns =
                query.columns.iter().enumerate().map(|(number, column)| {
                    (names.get(number).unwrap_or(&column.name).clone(), column.r#type)
                });
            let (name, id, columns) = (ident(&cte.alias.name), self.ctes.len(), columns.collect());
            self.cte_names.push(CteScope { name, id, columns });
            self.ctes.push(Cte { query: Arc::new(query) });
        }
        Ok(())
    }

    fn body(&mut self, query: &ast::Query) -> Result<Query, SqlError> {
        let keys = order_keys(query.order_by.as_ref())?;
        let mut bound = match &*query.body {
            SetExpr::Select(select) => self.select(select, keys, &query.locks)?,
            body => {
                if !query.locks.is_empty() {
                    return Err(SqlError::unknown("locks of rows on anything but SELECT"));
                }
                let mut bound = self.set_expr(body)?;
                for key in keys {
                    let place = output_place(&key.expr, &bound.columns)?;
                    let place = place.ok_or_else(|| {
                        SqlError::new("0A000", "invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
                            .detail("Only result column names can be used, not expressions or functions.")
                    })?;
                    bound.order.push(sort_key(SortBy::Output(place), key));
                }
                bound
            }
        };
        self.limits(query, &mut bound)?;
        Ok(bound)
    }

    fn limits(&mut self, query: &ast::Query, bound: &mut Query) -> Result<(), SqlError> {
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(_) => return Err(SqlError::unknown("this form of LIMIT")),
        };
        if let Some(limit) = limit {
            bound.limit = Some(self.count(limit, "LIMIT")?);
        }
        if let Some(offset) = offset {
            bound.offset = Some(self.count(offset, "OFFSET")?);
        }
        Ok(())
    }

    fn count(&mut self, expr: &ast::Expr, clause: &str) -> Result<Expr, SqlError> {
        let (typed, _) = self.within(Level::default(), |binder| binder.expr(expr))?;
        let from = typed.r#type;
        let count = self.coerce(typed, Modified::plain(Type::Int8), Context::Assignment)?;
        count.ok_or_else(|| {
            let text = format!("argument of {clause} must be type bigint, not type {}", from.name());
            SqlError::new("42804", text)
        })
    }

    fn set_expr(&mut self, body: &SetExpr) -> Result<Query, SqlError> {
        match body {
            SetExpr::Select(select) => self.detached(|binder| binder.select(select, &[], &[])),
            SetExpr::Query(query) => self.detached(|binder| binder.query(query, true)),
            SetExpr::Values(values) => self.values(values),
            SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right } => {
                let all = *set_quantifier == SetQuantifier::All;
                let (left, right) = (self.set_expr(left)?, self.set_expr(right)?);
                self.union(left, right, all)
            }
            SetExpr::SetOperation { op, .. } => Err(SqlError::unknown(op)),
            SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
                self.change(statement)
            }
            other => Err(SqlError::unknown(format_args!("the query {other}"))),
        }
    }

    /// Resolves a part of a query, without the sources of the other parts.
    pub(super) fn detached<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let hidden = self.levels.last_mut().map(|level| {
            let sources = std::mem::take(&mut level.sources);
            (sources, std::mem::take(&mut level.aggregates), level.no_aggregates.take())
        });
        let bound = bind(self);
        if let (Some(level), Some(hidden)) = (self.levels.last_mut(), hidden) {
            (level.sources, level.aggregates, level.no_aggregates) = hidden;
        }
        bound
    }

    /// Resolves a statement as a query.
    pub(super) fn change(&mut self, statement: &Statement) -> Result<Query, SqlError> {
        match statement {
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            other => Err(SqlError::unknown(format_args!("the statement {other} here"))),
        }
    }

    fn union(&mut self, mut left: Query, mut right: Query, all: bool) -> Result<Query, SqlError> {
        if left.columns.len() != right.columns.len() {
            let text = "each UNION query must have the same number of columns";
            return Err(SqlError::syntax(text));
        }
        let mut columns = Vec::new();
        for number in 0..left.columns.len() {
            let r#type = |query: &Query| query.columns.get(number).map_or(Type::Text, |c| c.r#type);
            let common = common_type(&[r#type(&left), r#type(&right)], "UNION")?;
            self.settle(&mut left, number, Modified::plain(common))?;
            self.settle(&mut right, number, Modified::plain(common))?;
            let name = left.columns.get(number).map(|column| column.name.clone()).unwrap_or_default();
            columns.push(Column { name, r#type: common });
        }
        let body = Body::Union { left: Box::new(left), right: Box::new(right), all };
        Ok(Query { body, order: Vec::new(), limit: None, offset: None, columns })
    }

    fn values(&mut self, values: &ast::Values) -> Result<Query, SqlError> {
        let (mut rows, mut width) = (Vec::new(), None);
        for row in &values.rows {
            let cells = row.content.iter().map(|cell| self.expr(cell)).collect::<Result<Vec<_>, _>>()?;
            if width.is_some_and(|width| width != cells.len()) {
                return Err(SqlError::syntax("VALUES lists must all be the same length"));
            }
            width = Some(cells.len());
            rows.push(cells);
        }
        let (mut columns, mut by_column) = (Vec::new(), Vec::new());
        for number in 0..width.unwrap_or_default() {
            let cells: Vec<_> = rows.iter().filter_map(|row| row.get(number).cloned()).collect();
            let (cells, r#type) = self.unify(cells, "VALUES")?;
            by_column.push(cells.into_iter());
            columns.push(Column { name: format!("column{}", number + 1), r#type });
        }
        let rows = rows.iter().map(|_| by_column.iter_mut().filter_map(Iterator::next).collect());
        let body = Body::Values(rows.collect());
        Ok(Query { body, order: Vec::new(), limit: None, offset: None, columns })
    }

    /// Converts a column of the output to another type.
    pub(super) fn settle(&mut self, query: &mut Query, number: usize, to: Modified) -> Result<(), SqlError> {
        let Some(column) = query.columns.get_mut(number) else { return Ok(()) };
        let from = column.r#type;
        if from == to.r#type {
            return Ok(());
        }
        column.r#type = to.r#type;
        if let Body::Union { left, right, .. } = &mut query.body {
            self.settle(left, number, to)?;
            return self.settle(right, number, to);
        }
        for output in query.outputs(number) {
            let expr = std::mem::replace(output, Expr::Const(Value::Null));
            let coerced = self.coerce(Typed { expr, r#type: from }, to, Context::Implicit)?;
            *output = coerced.ok_or_else(|| SqlError::new("42804", "types cannot be matched"))?;
        }
        Ok(())
    }

    /// Converts a column of the output as an expression over it says, which is a cast.
    pub(super) fn convert_output(
        &mut self,
        query: &mut Query,
        number: usize,
        by: &Expr,
    ) -> Result<(), SqlError> {
        let Expr::Call { op: Op::Cast { to, .. }, .. } = by else { return Ok(()) };
        self.settle(query, number, *to)
    }
}

/// Returns the column of the output that a key of an order names, by its name or its number.
pub(super) fn output_place(expr: &ast::Expr, columns: &[Column]) -> Result<Option<usize>, SqlError> {
    match expr {
        ast::Expr::Identifier(name) => {
            let name = ident(name);
            Ok(columns.iter().position(|column| column.name == name))
        }
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => {
                let number = digits.parse::<usize>().ok().filter(|n| (1..=columns.len()).contains(n));
                let wrong =
                    || SqlError::new("42P10", format!("ORDER BY position {digits} is not in select list"));
                number.map(|number| Some(number - 1)).ok_or_else(wrong)
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Makes a key of an order.
pub(super) fn sort_key(key: SortBy, from: &ast::OrderByExpr) -> SortKey {
    let is_descending = is_descending(&from.options);
    let nulls_first = from.options.nulls_first.unwrap_or(is_descending);
    SortKey { key, is_descending, nulls_first }
}
