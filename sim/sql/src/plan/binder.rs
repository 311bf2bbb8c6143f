//! The state of resolving a statement: the names in sight, and the parameters.

use std::collections::BTreeMap;

use sqlparser::ast;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use sqlparser::tokenizer::Span;

use super::expr::{AggregateCall, Cte, Expr, Typed};
use crate::error::SqlError;
use crate::storage::catalog::Viewer;
use crate::storage::lock::Mode;
use crate::storage::store::Store;
use crate::storage::table::TableId;
use crate::syntax::parse::position;
use crate::value::types::Type;

/// A source of columns.
#[derive(Clone, Debug)]
pub(super) struct SourceScope {
    pub(super) alias: String,
    pub(super) columns: Vec<(String, Type)>,
    /// The place of its first column in the row.
    pub(super) offset: usize,
}

/// The names of one query.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) sources: Vec<SourceScope>,
    /// Whether it, or a query within it, reads the row of a query further out.
    pub(super) is_correlated: bool,
    /// The aggregates found so far; `None` where they are not allowed, with the name of the clause.
    pub(super) aggregates: Vec<AggregateCall>,
    pub(super) no_aggregates: Option<&'static str>,
    /// Where the statement names a column first.
    pub(super) places: BTreeMap<usize, usize>,
}

/// The name of a common table expression.
#[derive(Clone, Debug)]
pub(super) struct CteScope {
    pub(super) name: String,
    pub(super) id: usize,
    pub(super) columns: Vec<(String, Type)>,
}

/// Resolves the names and types of one statement.
#[derive(Debug)]
pub(crate) struct Binder<'a> {
    pub(super) store: &'a Store,
    pub(super) viewer: Viewer,
    text: &'a str,
    pub(crate) parameters: Vec<Type>,
    pub(super) levels: Vec<Level>,
    pub(super) cte_names: Vec<CteScope>,
    pub(super) ctes: Vec<Cte>,
    pub(super) subqueries: usize,
    pub(super) tables: BTreeMap<TableId, Mode>,
    /// The texts of literals with their places, for the errors of those that are no value of their type.
    pub(super) literals: Vec<(String, usize)>,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(store: &'a Store, viewer: Viewer, text: &'a str, parameters: Vec<Type>) -> Self {
        Self {
            store,
            viewer,
            text,
            parameters,
            levels: Vec::new(),
            cte_names: Vec::new(),
            ctes: Vec::new(),
            subqueries: 0,
            tables: BTreeMap::new(),
            literals: Vec::new(),
        }
    }

    /// Returns the place of a part of the statement.
    pub(super) fn position(&self, span: Span) -> usize {
        position(self.text, span.start)
    }

    /// Returns the place of the first token of an expression. The parser's own search goes down by the stack.
    pub(super) fn start_of(&self, expr: &ast::Expr) -> usize {
        let mut first = expr;
        while let ast::Expr::BinaryOp { left: inner, .. } | ast::Expr::Nested(inner) = first {
            first = inner;
        }
        self.position(sqlparser::ast::Spanned::span(first))
    }

    /// Returns the place of the operator before an expression; 0 if it is not to be seen.
    pub(super) fn place_of_operator(&self, op: &ast::BinaryOperator, right: &ast::Expr) -> usize {
        let start = self.start_of(right);
        self.before(start, &op.to_string())
    }

    /// Returns the place of a word that stands right before another place; 0 if it does not.
    pub(super) fn before(&self, place: usize, word: &str) -> usize {
        let before: String = self.text.chars().take(place.saturating_sub(1)).collect();
        let rest = before.trim_end().strip_suffix(word);
        rest.map_or(0, |rest| rest.chars().count() + 1)
    }

    /// Notes that the statement uses a table.
    pub(super) fn uses(&mut self, table: TableId, mode: Mode) {
        let strongest = self.tables.entry(table).or_insert(mode);
        *strongest = mode.max(*strongest);
    }

    /// Returns the table of a name.
    pub(super) fn table(&self, name: &ObjectName) -> Result<TableId, SqlError> {
        let parts = name_parts(name)?;
        let found = self.store.table_named(&self.viewer, &parts).map(|(id, _)| id);
        found.ok_or_else(|| missing_relation(&parts).at(self.position(span_of(name))))
    }

    /// Resolves a column, by the name of its source if there is one.
    pub(super) fn column(&mut self, source: Option<&Ident>, name: &Ident) -> Result<Typed, SqlError> {
        let wanted = ident(name);
        let at = self.position(source.unwrap_or(name).span);
        let alias = source.map(ident);
        let source = alias.as_deref();
        for depth in 0..self.levels.len() {
            let place = self.levels.len() - 1 - depth;
            let Some(level) = self.levels.get(place) else { continue };
            let sources = level.sources.iter().filter(|s| match source {
                Some(alias) => s.alias == alias,
                None => true,
            });
            let found: Vec<_> = sources
                .flat_map(|source| {
                    let named = source.columns.iter().enumerate().filter(|(_, (name, _))| *name == wanted);
                    named.map(|(number, (_, r#type))| (source.offset + number, *r#type))
                })
                .collect();
            match found[..] {
                [] => {}
                [(index, r#type)] => {
                    if let Some(level) = self.levels.get_mut(place) {
                        level.places.entry(index).or_insert(at);
                    }
                    for level in self.levels.iter_mut().skip(place + 1) {
                        level.is_correlated = true;
                    }
                    return Ok(Typed { expr: Expr::Column { depth, index }, r#type });
                }
                _ => {
                    let text = format!("column reference \"{wanted}\" is ambiguous");
                    return Err(SqlError::new("42702", text).at(at));
                }
            }
        }
        Err(self.missing_column(source, &wanted).at(at))
    }

    fn missing_column(&self, source: Option<&str>, name: &str) -> SqlError {
        let Some(alias) = source else {
            return SqlError::new("42703", format!("column \"{name}\" does not exist"));
        };
        let is_source = self.levels.iter().flat_map(|level| &level.sources).any(|s| s.alias == alias);
        if is_source {
            return SqlError::new("42703", format!("column {alias}.{name} does not exist"));
        }
        SqlError::new("42P01", format!("missing FROM-clause entry for table \"{alias}\""))
    }

    /// Resolves a part of the statement that sees no rows of its surroundings.
    pub(super) fn alone<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let levels = std::mem::take(&mut self.levels);
        let bound = self.within(Level::default(), bind);
        self.levels = levels;
        bound.map(|(bound, _)| bound)
    }

    /// Resolves expressions at a level of its own; returns the level as it was left.
    pub(super) fn within<T>(
        &mut self,
        level: Level,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<(T, Level), SqlError> {
        self.levels.push(level);
        let bound = bind(self);
        let level = self.levels.pop().unwrap_or_default();
        Ok((bound?, level))
    }
}

/// Returns a name as PostgreSQL folds it: in lower case, unless it is quoted.
pub(crate) fn ident(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// Returns the parts of a name.
pub(crate) fn name_parts(name: &ObjectName) -> Result<Vec<String>, SqlError> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(part) => Ok(ident(part)),
            ObjectNamePart::Function(_) => Err(SqlError::unknown(format_args!("the name {name}"))),
        })
        .collect()
}

pub(super) fn span_of(name: &ObjectName) -> Span {
    match name.0.first() {
        Some(ObjectNamePart::Identifier(part)) => part.span,
        _ => Span::empty(),
    }
}

/// Makes the error of a relation that does not exist: 42P01.
pub(crate) fn missing_relation(parts: &[String]) -> SqlError {
    SqlError::new("42P01", format!("relation \"{}\" does not exist", parts.join(".")))
}
