//! Queries: locks, orders, limits, and the rows that come out.

use std::cmp::Ordering;

use super::run::{Env, Rows, Run, out_of_step};
use super::scan::Tuple;
use crate::error::SqlError;
use crate::plan::expr::{Body, Distinct, Expr, LockSpec, Query, Select, SortBy, SortKey, Source};
use crate::session::Entry;
use crate::storage::rows::{Locked, of_lock};
use crate::storage::stop::Stop;
use crate::value::Value;

/// A row before its order: the values of the input, and those to sort by.
struct Sorted {
    tuple: Tuple,
    keys: Vec<Value>,
}

impl Run<'_> {
    /// Returns the rows of a query.
    pub(super) fn query(&mut self, query: &Query, outer: Option<&Env<'_>>) -> Result<Rows, Stop> {
        let limit = self.count(query.limit.as_ref(), outer, "LIMIT")?;
        let offset = self.count(query.offset.as_ref(), outer, "OFFSET")?.unwrap_or(0);
        let end = limit.map(|limit| limit.saturating_add(offset));
        if limit == Some(0) && !matches!(query.body, Body::Modify(_)) {
            return Ok(Vec::new());
        }
        let rows = match &query.body {
            Body::Select(select) => self.select(query, select, end, outer)?,
            body => {
                let mut rows = match body {
                    Body::Values(rows) => self.values(rows, outer)?,
                    Body::Union { left, right, all } => self.union(left, right, *all, outer)?,
                    Body::Modify(modify) => self.modify(modify)?.1,
                    Body::Select(_) => Vec::new(),
                };
                let key = |row: &Vec<Value>, by: &SortBy| match by {
                    SortBy::Output(place) => row.get(*place).cloned().unwrap_or(Value::Null),
                    SortBy::Input(_) => Value::Null,
                };
                rows.sort_by(|a, b| {
                    compare(&query.order, |sort| key(a, &sort.key), |sort| key(b, &sort.key))
                });
                rows
            }
        };
        let end = end.unwrap_or(usize::MAX);
        Ok(rows.into_iter().take(end).skip(offset).collect())
    }

    fn count(
        &mut self,
        expr: Option<&Expr>,
        outer: Option<&Env<'_>>,
        clause: &str,
    ) -> Result<Option<usize>, Stop> {
        let Some(expr) = expr else { return Ok(None) };
        let inner = Env { row: &[], outer };
        match self.eval(expr, &Env { row: &[], outer: Some(&inner) })? {
            Value::Int(count) if count < 0 => {
                let code = if clause == "LIMIT" { "2201W" } else { "2201X" };
                Err(SqlError::new(code, format!("{clause} must not be negative")).into())
            }
            Value::Int(count) => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
            _ => Ok(None),
        }
    }

    fn values(&mut self, rows: &[Vec<Expr>], outer: Option<&Env<'_>>) -> Result<Rows, Stop> {
        let env = Env { row: &[], outer };
        rows.iter().map(|row| row.iter().map(|cell| self.eval(cell, &env)).collect()).collect()
    }

    fn union(
        &mut self,
        left: &Query,
        right: &Query,
        all: bool,
        outer: Option<&Env<'_>>,
    ) -> Result<Rows, Stop> {
        let mut rows = self.query(left, outer)?;
        rows.extend(self.query(right, outer)?);
        if !all {
            let mut seen = std::collections::BTreeSet::new();
            rows.retain(|row| seen.insert(row.clone()));
        }
        Ok(rows)
    }

    /// Returns the rows of a `SELECT`, of which `end` are enough.
    fn select(
        &mut self,
        query: &Query,
        select: &Select,
        end: Option<usize>,
        outer: Option<&Env<'_>>,
    ) -> Result<Rows, Stop> {
        // Without an order, groups and locks, nothing behind the last row is looked at.
        let is_plain = query.order.is_empty()
            && select.locks.is_empty()
            && select.group.is_none()
            && matches!(select.distinct, Distinct::All);
        let enough = end.filter(|_| is_plain).unwrap_or(usize::MAX);
        let tuples = self.join(&select.from, enough, outer)?;
        let tuples = match &select.group {
            None => tuples,
            Some(group) => self.group(group, tuples, outer)?,
        };
        let mut sorted = Vec::new();
        for tuple in tuples {
            let env = Env { row: &tuple.values, outer };
            let keys = self.sort_keys(query, select, &env)?;
            sorted.push(Sorted { tuple, keys });
        }
        if !query.order.is_empty() {
            let key = |row: &Sorted, place: usize| row.keys.get(place).cloned().unwrap_or(Value::Null);
            sorted.sort_by(|a, b| {
                let mut order = Ordering::Equal;
                for (place, sort) in query.order.iter().enumerate() {
                    order = order.then_with(|| compare_keys(sort, &key(a, place), &key(b, place)));
                }
                order
            });
        }
        self.output(query, select, sorted, end.unwrap_or(usize::MAX), outer)
    }

    fn sort_keys(&mut self, query: &Query, select: &Select, env: &Env<'_>) -> Result<Vec<Value>, Stop> {
        let mut keys = Vec::new();
        for sort in &query.order {
            let expr = match &sort.key {
                SortBy::Input(expr) => Some(expr),
                SortBy::Output(place) => select.output.get(*place),
            };
            keys.push(expr.map_or(Ok(Value::Null), |expr| self.eval(expr, env))?);
        }
        Ok(keys)
    }

    /// Locks the rows in their order, and evaluates the output until there are enough.
    fn output(
        &mut self,
        query: &Query,
        select: &Select,
        sorted: Vec<Sorted>,
        end: usize,
        outer: Option<&Env<'_>>,
    ) -> Result<Rows, Stop> {
        let mut rows = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for Sorted { mut tuple, keys } in sorted {
            if rows.len() >= end {
                break;
            }
            let versions = if select.locks.is_empty() { Vec::new() } else { tuple.versions.clone() };
            if !self.lock_tuple(select, &mut tuple, outer)? {
                continue;
            }
            let env = Env { row: &tuple.values, outer };
            // A column that the rows are sorted by has its value already, unless the row has changed.
            let is_same = select.locks.is_empty() || versions == tuple.versions;
            let keys = if is_same { keys } else { Vec::new() };
            let row = select.output.iter().enumerate().map(|(place, expr)| {
                let is_it = |sort: &SortKey| matches!(sort.key, SortBy::Output(by) if by == place);
                let known = query.order.iter().position(is_it).and_then(|key| keys.get(key));
                known.map_or_else(|| self.eval(expr, &env), |value| Ok(value.clone()))
            });
            let row = row.collect::<Result<Vec<_>, _>>()?;
            let key = match &select.distinct {
                Distinct::All => None,
                Distinct::Rows => Some(row.clone()),
                Distinct::On(on) => {
                    Some(on.iter().map(|expr| self.eval(expr, &env)).collect::<Result<Vec<_>, _>>()?)
                }
            };
            if key.is_none_or(|key| seen.insert(key)) {
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Locks the versions of a row; returns whether the row still belongs to the result.
    fn lock_tuple(
        &mut self,
        select: &Select,
        tuple: &mut Tuple,
        outer: Option<&Env<'_>>,
    ) -> Result<bool, Stop> {
        let mut is_moved = false;
        for LockSpec { item, mode, policy } in &select.locks {
            let source = select.from.items.get(*item).map(|item| &item.source);
            let version = tuple.versions.get(*item).copied().flatten();
            let (Some(Source::Table(table)), Some(version)) = (source, version) else { continue };
            let entry = self.once(|run| {
                let locked =
                    run.store.lock_row(run.actor, *table, version, *mode, *policy).map_err(of_lock)?;
                Ok(Entry::Locked(locked))
            })?;
            match entry {
                Entry::Locked(Locked::Same) => {}
                Entry::Locked(Locked::Moved(version)) => {
                    self.move_to(&select.from, tuple, *item, version);
                    is_moved = true;
                }
                Entry::Locked(_) => return Ok(false),
                _ => return Err(out_of_step()),
            }
        }
        if is_moved { self.still_holds(&select.from, tuple, outer) } else { Ok(true) }
    }
}

fn compare(order: &[SortKey], a: impl Fn(&SortKey) -> Value, b: impl Fn(&SortKey) -> Value) -> Ordering {
    order.iter().fold(Ordering::Equal, |sum, sort| sum.then_with(|| compare_keys(sort, &a(sort), &b(sort))))
}

/// Compares by one key of an order.
pub(super) fn compare_keys(sort: &SortKey, a: &Value, b: &Value) -> Ordering {
    ordered(a, b, sort.is_descending, sort.nulls_first)
}

/// Compares two values in an order.
pub(super) fn ordered(a: &Value, b: &Value, is_descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (a_null, b_null) if a_null || b_null => {
            if a_null == nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        _ if is_descending => b.cmp(a),
        _ => a.cmp(b),
    }
}
