//! `SELECT`.

use sqlparser::ast;
use sqlparser::ast::{GroupByExpr, LockClause, NonBlock, SelectItem, SelectItemQualifiedWildcardKind};

use super::binder::{Binder, ident, name_parts};
use super::expr::{Body, Distinct, Expr, From, Group, LockSpec, Query, Select, SortBy, Source, Typed};
use super::names::name_of;
use super::query::{output_place, sort_key};
use crate::api::Column;
use crate::error::SqlError;
use crate::storage::lock::{Mode, RowMode};
use crate::storage::rows::Policy;
use crate::value::types::Type;

impl Binder<'_> {
    /// Resolves a `SELECT` at the current level.
    pub(super) fn select(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
        locks: &[LockClause],
    ) -> Result<Query, SqlError> {
        let is_plain = select.into.is_none()
            && select.lateral_views.is_empty()
            && select.named_window.is_empty()
            && select.qualify.is_none()
            && select.top.is_none()
            && select.connect_by.is_empty();
        if !is_plain {
            return Err(SqlError::unknown("this clause of SELECT"));
        }
        let mut from = From::default();
        self.from(&mut from, &select.from)?;
        if let Some(selection) = &select.selection {
            let condition = self.where_clause(selection)?;
            self.add_conditions(&mut from, condition);
        }
        let (mut output, columns) = self.projection(&select.projection)?;
        let mut keys = self.group_keys(&select.group_by, &output, &columns)?;
        let mut having = match &select.having {
            Some(having) => {
                let typed = self.expr(having)?;
                Some(self.condition(typed, "HAVING")?)
            }
            None => None,
        };
        let mut distinct = match &select.distinct {
            None | Some(ast::Distinct::All) => Distinct::All,
            Some(ast::Distinct::Distinct) => {
                columns.iter().try_for_each(|column| refuse_json(column.r#type, "equality"))?;
                Distinct::Rows
            }
            Some(ast::Distinct::On(on)) => {
                let on = on.iter().map(|key| Ok(self.expr(key)?.expr));
                Distinct::On(on.collect::<Result<_, SqlError>>()?)
            }
        };
        let mut sort = Vec::new();
        for key in order {
            let by = match output_place(&key.expr, &columns)? {
                Some(place) => SortBy::Output(place),
                None => {
                    let typed = self.expr(&key.expr)?;
                    refuse_json(typed.r#type, "ordering")?;
                    let expr = self.known(typed)?.expr;
                    match output.iter().position(|column| *column == expr) {
                        // It is evaluated once.
                        Some(place) if expr.is_volatile() => SortBy::Output(place),
                        None if matches!(distinct, Distinct::Rows) => {
                            let text = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                            let at = self.position(sqlparser::ast::Spanned::span(&key.expr));
                            return Err(SqlError::new("42P10", text).at(at));
                        }
                        _ => SortBy::Input(expr),
                    }
                }
            };
            if let SortBy::Output(place) = by {
                refuse_json(columns.get(place).map_or(Type::Text, |column| column.r#type), "ordering")?;
            }
            sort.push(sort_key(by, key));
        }
        let aggregates = self.levels.last_mut().map(|level| std::mem::take(&mut level.aggregates));
        let aggregates = aggregates.unwrap_or_default();
        let is_grouped = !aggregates.is_empty() || !keys.is_empty() || having.is_some();
        let locks = self.locks(&from, locks, is_grouped, &distinct)?;
        let group = if is_grouped {
            let count = aggregates.len();
            let mut grouped = |expr: &mut Expr| self.regroup(expr, &mut keys, count, &from);
            output.iter_mut().try_for_each(&mut grouped)?;
            having.iter_mut().try_for_each(&mut grouped)?;
            for key in &mut sort {
                if let SortBy::Input(expr) = &mut key.key {
                    grouped(expr)?;
                }
            }
            if let Distinct::On(on) = &mut distinct {
                on.iter_mut().try_for_each(&mut grouped)?;
            }
            Some(Group { keys, aggregates, having })
        } else {
            None
        };
        let select = Select { from, group, output, distinct, locks };
        Ok(Query { body: Body::Select(Box::new(select)), order: sort, limit: None, offset: None, columns })
    }

    /// Resolves a condition in which no aggregate may be.
    pub(super) fn where_clause(&mut self, selection: &ast::Expr) -> Result<Expr, SqlError> {
        self.forbid_aggregates(Some("WHERE"));
        let typed = self.expr(selection);
        self.forbid_aggregates(None);
        let at = self.start_of(selection);
        self.condition(typed?, "WHERE").map_err(|error| error.at(at))
    }

    /// Resolves the expressions of a `SELECT` or of `RETURNING`.
    pub(super) fn projection(&mut self, items: &[SelectItem]) -> Result<(Vec<Expr>, Vec<Column>), SqlError> {
        let (mut output, mut columns) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let Typed { expr: bound, r#type } = self.expr(expr)?;
                    output.push(bound);
                    columns.push(Column { name: name_of(expr), r#type });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let Typed { expr: bound, r#type } = self.expr(expr)?;
                    output.push(bound);
                    columns.push(Column { name: ident(alias), r#type });
                }
                SelectItem::Wildcard(_) => self.wildcard(None, &mut output, &mut columns)?,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let parts = name_parts(name)?;
                    let alias = parts.last().map(String::as_str);
                    self.wildcard(alias, &mut output, &mut columns)?;
                }
                other => return Err(SqlError::unknown(format_args!("the column {other}"))),
            }
        }
        Ok((output, columns))
    }

    fn wildcard(
        &self,
        alias: Option<&str>,
        output: &mut Vec<Expr>,
        columns: &mut Vec<Column>,
    ) -> Result<(), SqlError> {
        let sources = self.levels.last().map_or(&[][..], |level| &level.sources);
        let mut is_found = false;
        for source in sources.iter().filter(|source| alias.is_none_or(|alias| source.alias == alias)) {
            is_found = true;
            for (number, (name, r#type)) in source.columns.iter().enumerate() {
                output.push(Expr::Column { depth: 0, index: source.offset + number });
                columns.push(Column { name: name.clone(), r#type: *r#type });
            }
        }
        match alias {
            Some(alias) if !is_found => {
                let text = format!("missing FROM-clause entry for table \"{alias}\"");
                Err(SqlError::new("42P01", text))
            }
            None if !is_found => Err(SqlError::syntax("SELECT * with no tables specified is not valid")),
            _ => Ok(()),
        }
    }

    fn group_keys(
        &mut self,
        group_by: &GroupByExpr,
        output: &[Expr],
        columns: &[Column],
    ) -> Result<Vec<Expr>, SqlError> {
        let GroupByExpr::Expressions(exprs, modifiers) = group_by else {
            return Err(SqlError::unknown("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(SqlError::unknown("ROLLUP, CUBE and TOTALS"));
        }
        self.forbid_aggregates(Some("GROUP BY"));
        let keys = exprs.iter().map(|expr| {
            // A name is a column of the input, or else of the output; a number is one of the output.
            let is_name = matches!(expr, ast::Expr::Identifier(_));
            let of_output = |place: usize| output.get(place).cloned();
            let named = output_place(expr, columns).map_err(|mut error| {
                error.message = error.message.replace("ORDER BY", "GROUP BY");
                error
            })?;
            match self.expr(expr) {
                Ok(typed) if is_name || named.is_none() => {
                    refuse_json(typed.r#type, "equality")?;
                    Ok(typed.expr)
                }
                Err(error) if named.is_none() => Err(error),
                _ => {
                    let column = named.and_then(|place| columns.get(place));
                    refuse_json(column.map_or(Type::Text, |column| column.r#type), "equality")?;
                    Ok(named.and_then(of_output).unwrap_or(Expr::Aggregate(0)))
                }
            }
        });
        let keys = keys.collect();
        self.forbid_aggregates(None);
        keys
    }

    /// Rewrites an expression over the row of a group: aggregates, then keys.
    fn regroup(
        &self,
        expr: &mut Expr,
        keys: &mut Vec<Expr>,
        aggregates: usize,
        from: &From,
    ) -> Result<(), SqlError> {
        let mut failed = None;
        let owned = std::mem::replace(expr, Expr::Aggregate(0));
        *expr = owned.replace(&mut |part| {
            if let Some(place) = keys.iter().position(|key| key == part) {
                return Some(Expr::Column { depth: 0, index: aggregates + place });
            }
            match part {
                Expr::Aggregate(number) => Some(Expr::Column { depth: 0, index: *number }),
                Expr::Column { depth: 0, index } => {
                    if !self.follows_from(keys, from, *index) {
                        failed.get_or_insert_with(|| self.not_grouped(*index));
                    }
                    keys.push(part.clone());
                    Some(Expr::Column { depth: 0, index: aggregates + keys.len() - 1 })
                }
                Expr::Subquery(subquery) if subquery.is_correlated => {
                    failed
                        .get_or_insert_with(|| SqlError::unknown("subqueries that read the row of a group"));
                    None
                }
                _ => None,
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Returns whether the keys include the primary key of the column's table.
    fn follows_from(&self, keys: &[Expr], from: &From, index: usize) -> bool {
        let mut items = from.items.iter();
        let item = items.find(|item| (item.offset..item.offset + item.width).contains(&index));
        let Some((Source::Table(table), offset)) = item.map(|item| (&item.source, item.offset)) else {
            return false;
        };
        let primary = self.store.tables.get(table).and_then(|table| table.def.primary());
        primary.is_some_and(|primary| {
            let is_key = |place: &usize| keys.contains(&Expr::Column { depth: 0, index: offset + place });
            primary.columns.iter().all(is_key)
        })
    }

    fn not_grouped(&self, index: usize) -> SqlError {
        let sources = self.levels.last().map_or(&[][..], |level| &level.sources);
        let at = self.levels.last().and_then(|level| level.places.get(&index)).copied().unwrap_or(0);
        let name = sources.iter().find_map(|source| {
            let column = source.columns.get(index.checked_sub(source.offset)?)?;
            Some(format!("{}.{}", source.alias, column.0))
        });
        let name = name.unwrap_or_default();
        let text = format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        SqlError::new("42803", text).at(at)
    }

    /// Resolves locking clauses: `strength.table.table`, see `syntax::parse`.
    fn locks(
        &mut self,
        from: &From,
        clauses: &[LockClause],
        is_grouped: bool,
        distinct: &Distinct,
    ) -> Result<Vec<LockSpec>, SqlError> {
        let mut specs = Vec::new();
        for clause in clauses {
            let parts = clause.of.as_ref().map(name_parts).transpose()?.unwrap_or_default();
            let (strength, names) = parts.split_first().ok_or_else(|| SqlError::unknown("this lock"))?;
            let mode = match strength.as_str() {
                "update" => RowMode::Update,
                "no key update" => RowMode::NoKeyUpdate,
                "share" => RowMode::Share,
                _ => RowMode::KeyShare,
            };
            let words = strength.to_uppercase();
            let is_with = match (is_grouped, distinct) {
                (true, _) => Some("GROUP BY clause"),
                (false, Distinct::Rows | Distinct::On(_)) => Some("DISTINCT clause"),
                _ => None,
            };
            if let Some(with) = is_with {
                return Err(SqlError::new("0A000", format!("FOR {words} is not allowed with {with}")));
            }
            let policy = match clause.nonblock {
                None => Policy::Wait,
                Some(NonBlock::Nowait) => Policy::NoWait,
                Some(NonBlock::SkipLocked) => Policy::Skip,
            };
            for item in self.locked_items(from, names, &words)? {
                specs.push(LockSpec { item, mode, policy });
            }
        }
        Ok(specs)
    }

    fn locked_items(&mut self, from: &From, names: &[String], words: &str) -> Result<Vec<usize>, SqlError> {
        let sources = self.levels.last().map(|level| level.sources.clone()).unwrap_or_default();
        let mut items = Vec::new();
        for (number, (item, source)) in from.items.iter().zip(&sources).enumerate() {
            let is_named = names.contains(&source.alias);
            match &item.source {
                Source::Table(table) if names.is_empty() || is_named => {
                    if item.left_join.is_some() {
                        let text =
                            format!("FOR {words} cannot be applied to the nullable side of an outer join");
                        return Err(SqlError::new("0A000", text));
                    }
                    self.uses(*table, Mode::RowShare);
                    items.push(number);
                }
                Source::Cte(_) if is_named => {
                    let text = format!("FOR {words} cannot be applied to a WITH query");
                    return Err(SqlError::new("0A000", text));
                }
                Source::Query(query) if (names.is_empty() || is_named) && reads_tables(query) => {
                    return Err(SqlError::unknown(format_args!("FOR {words} of the rows of a subquery")));
                }
                _ if is_named => {
                    let text = format!("FOR {words} cannot be applied to a function");
                    return Err(SqlError::new("0A000", text));
                }
                _ => {}
            }
        }
        let is_missing = |name: &&String| !sources.iter().any(|source| source.alias == **name);
        if let Some(name) = names.iter().find(is_missing) {
            let text = format!("relation \"{name}\" in FOR {words} clause not found in FROM clause");
            return Err(SqlError::new("42P01", text));
        }
        Ok(items)
    }
}

/// Refuses to sort or to compare values of type json, which has no operators for it.
fn refuse_json(r#type: Type, what: &str) -> Result<(), SqlError> {
    if r#type != Type::Json {
        return Ok(());
    }
    Err(SqlError::new("42883", format!("could not identify an {what} operator for type json")))
}

fn reads_tables(query: &Query) -> bool {
    match &query.body {
        Body::Select(select) => select.from.items.iter().any(|item| match &item.source {
            Source::Table(_) => true,
            Source::Query(query) => reads_tables(query),
            _ => false,
        }),
        Body::Union { left, right, .. } => reads_tables(left) || reads_tables(right),
        Body::Values(_) => false,
        Body::Modify(_) => true,
    }
}
