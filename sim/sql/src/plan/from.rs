//! Sources of queries, their joins and conditions.

use std::sync::Arc;

use sqlparser::ast;
use sqlparser::ast::{
    FunctionArg, FunctionArgExpr, JoinConstraint, JoinOperator, TableFactor, TableWithJoins,
};

use super::binder::{Binder, SourceScope, ident, name_parts, span_of};
use super::casts::Context;
use super::expr::{Compare, Condition, Expr, From, Item, Op, SetFunction, Source, Typed};
use crate::error::SqlError;
use crate::storage::lock::Mode;
use crate::storage::table::{Modified, TableId};
use crate::value::types::Type;

/// The most sources of one `FROM`: conditions have one bit for each, and an `UPDATE` has its target beside
/// them.
const SOURCES_MAX: usize = 63;

/// A source with its columns.
struct Found {
    source: Source,
    alias: String,
    columns: Vec<(String, Type)>,
    is_lateral: bool,
}

impl Binder<'_> {
    /// Resolves the sources of a query, and puts their names into the current level.
    pub(super) fn from(&mut self, from: &mut From, tables: &[TableWithJoins]) -> Result<(), SqlError> {
        for table in tables {
            self.item(from, &table.relation, None)?;
            for join in &table.joins {
                let (constraint, is_left) = match &join.join_operator {
                    JoinOperator::Join(c) | JoinOperator::Inner(c) | JoinOperator::CrossJoin(c) => (c, false),
                    JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (c, true),
                    _ => return Err(SqlError::unknown("RIGHT, FULL and other joins; take LEFT JOIN")),
                };
                self.item(from, &join.relation, Some((constraint, is_left)))?;
            }
        }
        Ok(())
    }

    fn item(
        &mut self,
        from: &mut From,
        relation: &TableFactor,
        join: Option<(&JoinConstraint, bool)>,
    ) -> Result<(), SqlError> {
        let found = self.source(relation)?;
        let before = from.items.len();
        if before == SOURCES_MAX {
            return Err(SqlError::unknown(format_args!("more than {SOURCES_MAX} sources in one FROM")));
        }
        let width = found.columns.len();
        let item = Item {
            source: found.source,
            offset: from.width,
            width,
            left_join: None,
            is_lateral: found.is_lateral,
        };
        self.add_source(found.alias, found.columns, from.width)?;
        from.width += width;
        from.items.push(item);
        let Some((constraint, is_left)) = join else { return Ok(()) };
        let condition = self.join_condition(constraint)?;
        match condition {
            Some(condition) if is_left => {
                if let Some(item) = from.items.get_mut(before) {
                    item.left_join = Some(condition);
                }
            }
            Some(condition) => self.add_conditions(from, condition),
            None => {}
        }
        Ok(())
    }

    /// Puts a source into the current level.
    pub(super) fn add_source(
        &mut self,
        alias: String,
        columns: Vec<(String, Type)>,
        offset: usize,
    ) -> Result<(), SqlError> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        if level.sources.iter().any(|source| source.alias == alias && !alias.is_empty()) {
            let text = format!("table name \"{alias}\" specified more than once");
            return Err(SqlError::new("42712", text));
        }
        level.sources.push(SourceScope { alias, columns, offset });
        Ok(())
    }

    fn join_condition(&mut self, constraint: &JoinConstraint) -> Result<Option<Expr>, SqlError> {
        match constraint {
            JoinConstraint::None => Ok(None),
            JoinConstraint::On(condition) => {
                self.forbid_aggregates(Some("JOIN conditions"));
                let typed = self.expr(condition)?;
                self.forbid_aggregates(None);
                self.condition(typed, "JOIN/ON").map(Some)
            }
            _ => Err(SqlError::unknown("JOIN USING and NATURAL JOIN; take JOIN … ON")),
        }
    }

    /// Returns the columns of a table.
    pub(super) fn columns_of(&self, table: TableId) -> Vec<(String, Type)> {
        let columns = self.store.tables.get(&table).map_or(&[][..], |table| &table.def.columns);
        columns.iter().map(|column| (column.name.clone(), column.r#type.r#type)).collect()
    }

    fn source(&mut self, relation: &TableFactor) -> Result<Found, SqlError> {
        let (mut found, alias) = match relation {
            TableFactor::Table { with_ordinality: true, .. } | TableFactor::Table { sample: Some(_), .. } => {
                return Err(SqlError::unknown("WITH ORDINALITY and TABLESAMPLE"));
            }
            TableFactor::Table { name, alias, args: None, .. } => (self.table_or_cte(name)?, alias),
            TableFactor::Table { name, alias, args: Some(args), .. } => {
                (self.set_function(name, &args.args)?, alias)
            }
            TableFactor::Function { name, args, alias, with_ordinality: false, .. } => {
                (self.set_function(name, args)?, alias)
            }
            TableFactor::UNNEST {
                array_exprs, alias, with_offset: false, with_ordinality: false, ..
            } => {
                let args = array_exprs.iter().map(|array| self.expr(array)).collect::<Result<_, _>>()?;
                (self.set_call("unnest", args)?, alias)
            }
            TableFactor::Derived { lateral, subquery, alias, sample: None } => {
                let query = if *lateral {
                    self.nested_query(subquery)?.0
                } else {
                    self.detached(|binder| binder.nested_query(subquery))?.0
                };
                let columns = query.columns.iter().map(|column| (column.name.clone(), column.r#type));
                let columns = columns.collect();
                let source = Source::Query(Arc::new(query));
                (Found { source, alias: String::new(), columns, is_lateral: *lateral }, alias)
            }
            other => return Err(SqlError::unknown(format_args!("the source {other}"))),
        };
        match alias {
            Some(alias) => {
                found.alias = ident(&alias.name);
                // A function names its only column by its alias, unless it has a name for it.
                let is_value = match found.source {
                    Source::Set(function, _) => !matches!(
                        function,
                        SetFunction::JsonbArrayElements | SetFunction::JsonbArrayElementsText
                    ),
                    Source::Value(_) => true,
                    _ => false,
                };
                if let (true, [column], []) = (is_value, &mut found.columns[..], &alias.columns[..]) {
                    column.0.clone_from(&found.alias);
                }
                for (column, name) in found.columns.iter_mut().zip(&alias.columns) {
                    column.0 = ident(&name.name);
                }
            }
            None if matches!(found.source, Source::Query(_)) => {
                return Err(SqlError::syntax("subquery in FROM must have an alias")
                    .hint("For example, FROM (SELECT ...) [AS] foo."));
            }
            None => {}
        }
        Ok(found)
    }

    fn table_or_cte(&mut self, name: &ast::ObjectName) -> Result<Found, SqlError> {
        let parts = name_parts(name)?;
        let alias = parts.last().cloned().unwrap_or_default();
        let cte = self.cte_names.iter().rev().find(|cte| parts == [cte.name.as_str()]);
        if let Some(cte) = cte {
            let (source, columns) = (Source::Cte(cte.id), cte.columns.clone());
            return Ok(Found { source, alias, columns, is_lateral: false });
        }
        let is_catalog = parts.first().is_some_and(|first| {
            first == "pg_catalog"
                || first == "information_schema"
                || (parts.len() == 1 && first.starts_with("pg_"))
        });
        if is_catalog && self.store.table_named(&self.viewer, &parts).is_none() {
            let text = format!("the catalog {}: only built-in types are known", parts.join("."));
            return Err(SqlError::unknown(text).at(self.position(span_of(name))));
        }
        let table = self.table(name)?;
        self.uses(table, Mode::AccessShare);
        Ok(Found { source: Source::Table(table), alias, columns: self.columns_of(table), is_lateral: false })
    }

    fn set_function(&mut self, name: &ast::ObjectName, args: &[FunctionArg]) -> Result<Found, SqlError> {
        let parts = name_parts(name)?;
        let function = parts.last().cloned().unwrap_or_default();
        let mut typed = Vec::new();
        for arg in args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else {
                return Err(SqlError::unknown(format_args!("the argument {arg}")));
            };
            typed.push(self.expr(expr)?);
        }
        self.set_call(&function, typed)
    }

    fn set_call(&mut self, name: &str, args: Vec<Typed>) -> Result<Found, SqlError> {
        let types: Vec<_> = args.iter().map(|arg| arg.r#type).collect();
        let (function, wanted, columns) = match (name, &types[..]) {
            ("generate_series", [a, b] | [a, b, _]) if !matches!(a, Type::Timestamptz | Type::Timestamp) => {
                let common = if *a == Type::Int8 || *b == Type::Int8 { Type::Int8 } else { Type::Int4 };
                (SetFunction::GenerateSeries, vec![common; types.len()], vec![common])
            }
            ("generate_series", [a, _, _]) => {
                (SetFunction::GenerateSeries, vec![*a, *a, Type::Interval], vec![*a])
            }
            ("unnest", [array @ Type::Array(element)]) => {
                (SetFunction::Unnest, vec![*array], vec![**element])
            }
            ("jsonb_array_elements", [_]) => {
                (SetFunction::JsonbArrayElements, vec![Type::Jsonb], vec![Type::Jsonb])
            }
            ("jsonb_array_elements_text", [_]) => {
                (SetFunction::JsonbArrayElementsText, vec![Type::Jsonb], vec![Type::Text])
            }
            ("jsonb_each", [_]) => (SetFunction::JsonbEach, vec![Type::Jsonb], vec![Type::Text, Type::Jsonb]),
            ("jsonb_object_keys", [_]) => (SetFunction::JsonbObjectKeys, vec![Type::Jsonb], vec![Type::Text]),
            _ => {
                let typed = self.call(name, args)?;
                let columns = vec![(name.to_owned(), typed.r#type)];
                let source = Source::Value(typed.expr);
                return Ok(Found { source, alias: name.to_owned(), columns, is_lateral: true });
            }
        };
        let mut converted = Vec::new();
        for (arg, wanted) in args.into_iter().zip(wanted) {
            let from = arg.r#type;
            let arg = self.coerce(arg, Modified::plain(wanted), Context::Implicit)?;
            converted.push(arg.ok_or_else(|| {
                SqlError::unknown(format_args!("the function {name} of type {}", from.name()))
            })?);
        }
        let names: &[&str] = match function {
            SetFunction::JsonbEach => &["key", "value"],
            SetFunction::JsonbArrayElements | SetFunction::JsonbArrayElementsText => &["value"],
            _ => &[name],
        };
        let columns = names.iter().map(|name| (*name).to_owned()).zip(columns).collect();
        let source = Source::Set(function, converted);
        Ok(Found { source, alias: name.to_owned(), columns, is_lateral: true })
    }

    /// Adds a condition of `WHERE` or of an inner join, part by part.
    pub(super) fn add_conditions(&self, from: &mut From, expr: Expr) {
        if let Expr::Call { op: Op::And, args } = expr {
            args.into_iter().for_each(|arg| self.add_conditions(from, arg));
            return;
        }
        let needs = match needs(from, &expr) {
            // It has an effect for each row, and none if there is no row.
            0 if expr.is_volatile() => u64::MAX,
            needs => needs,
        };
        let mut has_subquery = false;
        expr.visit(&mut |part| has_subquery |= matches!(part, Expr::Subquery(_)));
        let mut equality = Vec::new();
        let sides = match &expr {
            Expr::Call { op: Op::Compare(Compare::Eq), args } => &args[..],
            _ => &[],
        };
        if let [a, b] = sides {
            for (column, other) in [(a, b), (b, a)] {
                if let (Expr::Column { depth: 0, index }, true) = (column, is_stable(other)) {
                    equality.push((*index, other.clone(), self::needs(from, other)));
                }
            }
        }
        from.conditions.push(Condition { expr, needs, equality, has_subquery });
    }
}

/// Returns the items whose columns an expression reads, as bits.
pub(super) fn needs(from: &From, expr: &Expr) -> u64 {
    let mut bits = 0;
    expr.visit(&mut |part| match part {
        Expr::Column { depth: 0, index } => {
            let is_in =
                |item: &&(usize, &Item)| (item.1.offset..item.1.offset + item.1.width).contains(index);
            let items: Vec<_> = from.items.iter().enumerate().collect();
            bits |= items.iter().find(is_in).map_or(0, |(number, _)| 1 << number);
        }
        Expr::Subquery(subquery) if subquery.is_correlated => bits |= u64::MAX,
        _ => {}
    });
    bits
}

/// Returns whether an expression has one value for the whole statement, given its columns.
fn is_stable(expr: &Expr) -> bool {
    use super::expr::SessionFunction as F;
    let mut is_stable = true;
    expr.visit(&mut |part| {
        if let Expr::Call { op: Op::Session(function), .. } = part {
            let stable = [F::Now, F::StatementTimestamp, F::CurrentDate, F::LocalTimestamp, F::BackendPid];
            is_stable &= stable.contains(function) || *function == F::CurrentUser;
        }
    });
    is_stable
}
