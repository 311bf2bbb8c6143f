//! Rows of tables and other sources, and their joins.

use std::sync::Arc;

use super::run::{Env, Rows, Run};
use crate::plan::expr::{Condition, From, Item, Source};
use crate::storage::serial::KeyRead;
use crate::storage::stop::Stop;
use crate::storage::table::{Table, TableId, Version, VersionId};
use crate::storage::transaction::Stamp;
use crate::value::Value;

/// A row of a query: the values of all its sources, and the versions that they come from.
#[derive(Clone, Debug)]
pub(super) struct Tuple {
    pub(super) values: Vec<Value>,
    pub(super) versions: Vec<Option<VersionId>>,
}

/// A row of one source.
struct Candidate {
    version: Option<VersionId>,
    values: Vec<Value>,
}

/// The key by which an index finds rows.
struct Lookup {
    index: usize,
    key: Vec<Value>,
}

impl Run<'_> {
    /// Joins the sources of a query, up to `enough` rows.
    pub(super) fn join(
        &mut self,
        from: &From,
        enough: usize,
        outer: Option<&Env<'_>>,
    ) -> Result<Vec<Tuple>, Stop> {
        let mut conditions: Vec<&Condition> = from.conditions.iter().collect();
        conditions.sort_by_key(|condition| condition.has_subquery);
        let empty = Tuple { values: vec![Value::Null; from.width], versions: vec![None; from.items.len()] };
        let is_first = |condition: &&&Condition| condition.needs == 0 || from.items.is_empty();
        for condition in conditions.iter().filter(is_first) {
            if !self.holds(&condition.expr, &Env { row: &empty.values, outer })? {
                return Ok(Vec::new());
            }
        }
        let (mut tuples, mut bound) = (vec![empty], 0_u64);
        for (number, item) in from.items.iter().enumerate() {
            let bit = 1 << number;
            let is_last = number + 1 == from.items.len();
            let ready = conditions.iter().copied().filter(|condition| {
                let needs = condition.needs;
                // A correlated subquery needs all of them.
                let is_ready = if needs == u64::MAX { is_last } else { needs & !(bound | bit) == 0 };
                is_ready && needs & bit != 0
            });
            let ready: Vec<_> = ready.collect();
            let fixed = if item.is_lateral { None } else { self.fixed_rows(item, outer)? };
            let mut joined = Vec::new();
            for tuple in tuples {
                if is_last && joined.len() >= enough {
                    break;
                }
                let candidates = self.candidates(from, number, bound, &tuple, fixed.as_ref(), outer)?;
                let mut is_matched = false;
                for candidate in candidates {
                    if is_last && joined.len() >= enough {
                        break;
                    }
                    let mut tuple = tuple.clone();
                    put(&mut tuple, number, item, candidate);
                    let env = Env { row: &tuple.values, outer };
                    if let Some(condition) = &item.left_join {
                        if !self.holds(condition, &env)? {
                            continue;
                        }
                        is_matched = true;
                    }
                    if self.all_hold(&ready, &env)? {
                        joined.push(tuple);
                    }
                }
                let env = Env { row: &tuple.values, outer };
                if item.left_join.is_some() && !is_matched && self.all_hold(&ready, &env)? {
                    joined.push(tuple);
                }
            }
            tuples = joined;
            bound |= bit;
        }
        Ok(tuples)
    }

    fn all_hold(&mut self, conditions: &[&Condition], env: &Env<'_>) -> Result<bool, Stop> {
        for condition in conditions {
            if !self.holds(&condition.expr, env)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks all conditions of a query for a row whose versions have changed: `EvalPlanQual`.
    pub(super) fn still_holds(
        &mut self,
        from: &From,
        tuple: &mut Tuple,
        outer: Option<&Env<'_>>,
    ) -> Result<bool, Stop> {
        for item in &from.items {
            let Some(condition) = &item.left_join else { continue };
            if !self.holds(condition, &Env { row: &tuple.values, outer })? {
                let range = item.offset..item.offset + item.width;
                tuple.values.get_mut(range).into_iter().flatten().for_each(|value| *value = Value::Null);
            }
        }
        let conditions: Vec<_> = from.conditions.iter().collect();
        self.all_hold(&conditions, &Env { row: &tuple.values, outer })
    }

    /// Replaces the version of an item in a row.
    pub(super) fn move_to(&self, from: &From, tuple: &mut Tuple, number: usize, version: VersionId) {
        let Some(item) = from.items.get(number) else { return };
        let Source::Table(table) = item.source else { return };
        let Some(found) = self.store.tables.get(&table) else { return };
        let Some(row) = found.data.versions.get(&version) else { return };
        let candidate = Candidate { version: Some(version), values: found.values(row) };
        put(tuple, number, item, candidate);
    }

    /// Returns the rows of a source that are the same for each row of the sources before it.
    fn fixed_rows(&mut self, item: &Item, outer: Option<&Env<'_>>) -> Result<Option<Arc<Rows>>, Stop> {
        Ok(match &item.source {
            Source::Cte(id) => Some(self.cte(*id)?),
            Source::Query(query) => {
                // Its names count the query around it, whose row it may not read.
                let hidden = Env { row: &[], outer };
                Some(Arc::new(self.query(query, Some(&hidden))?))
            }
            Source::Table(_) | Source::Set(..) | Source::Value(_) => None,
        })
    }

    fn candidates(
        &mut self,
        from: &From,
        number: usize,
        bound: u64,
        tuple: &Tuple,
        fixed: Option<&Arc<Rows>>,
        outer: Option<&Env<'_>>,
    ) -> Result<Vec<Candidate>, Stop> {
        let plain = |values: Vec<Value>| Candidate { version: None, values };
        if let Some(rows) = fixed {
            return Ok(rows.iter().cloned().map(plain).collect());
        }
        let Some(item) = from.items.get(number) else { return Ok(Vec::new()) };
        let env = Env { row: &tuple.values, outer };
        match &item.source {
            Source::Table(table) => {
                let lookup = self.lookup(*table, from, item, bound, &env)?;
                self.scan(*table, lookup)
            }
            Source::Query(query) => Ok(self.query(query, Some(&env))?.into_iter().map(plain).collect()),
            Source::Set(function, args) => {
                Ok(self.set_rows(*function, args, &env)?.into_iter().map(plain).collect())
            }
            Source::Value(expr) => Ok(vec![plain(vec![self.eval(expr, &env)?])]),
            Source::Cte(_) => Ok(Vec::new()),
        }
    }

    /// Chooses the index whose columns the conditions fix, and evaluates the key.
    fn lookup(
        &mut self,
        table: TableId,
        from: &From,
        item: &Item,
        bound: u64,
        env: &Env<'_>,
    ) -> Result<Option<Lookup>, Stop> {
        let equal = |column: usize| {
            let all = from.conditions.iter().flat_map(|condition| &condition.equality);
            all.filter(move |(index, _, needs)| *index == item.offset + column && needs & !bound == 0)
        };
        let Some(def) = self.store.tables.get(&table).map(|table| Arc::clone(&table.def)) else {
            return Ok(None);
        };
        let usable = def.indexes.iter().enumerate().filter(|(_, index)| index.predicate.is_none());
        let by_length = usable.map(|(number, index)| {
            let fixed = index.columns.iter().take_while(|column| equal(**column).next().is_some()).count();
            (fixed, std::cmp::Reverse(number))
        });
        let Some((fixed, number)) = by_length.max().filter(|(fixed, _)| *fixed > 0) else { return Ok(None) };
        let columns = def.indexes.get(number.0).map_or(&[][..], |index| &index.columns);
        let mut key = Vec::new();
        for column in columns.iter().take(fixed) {
            if let Some((_, expr, _)) = equal(*column).next() {
                key.push(self.eval(expr, env)?);
            }
        }
        Ok(Some(Lookup { index: number.0, key }))
    }

    /// Returns the versions of a table that the snapshot sees, in the order of their places.
    fn scan(&mut self, table: TableId, lookup: Option<Lookup>) -> Result<Vec<Candidate>, Stop> {
        if lookup.as_ref().is_some_and(|lookup| lookup.key.contains(&Value::Null)) {
            return Ok(Vec::new());
        }
        let Some(found) = self.store.tables.get(&table) else { return Ok(Vec::new()) };
        let mut missed = Vec::new();
        let mut rows = Vec::new();
        let versions = versions(found, lookup.as_ref());
        if self.is_serializable && !versions.is_empty() {
            self.store.serial.check_doomed(self.actor.snapshot.xid, "conflict out checking")?;
        }
        for (id, version) in versions {
            if version.is_visible(&self.actor.snapshot) {
                rows.push((id, version.row, found.values(version)));
            }
            if self.is_serializable {
                missed.extend(self.unseen_writer(version));
            }
        }
        if self.is_serializable {
            self.note_reads(table, lookup, &rows.iter().map(|(_, row, _)| *row).collect::<Vec<_>>(), missed)?;
        }
        let candidate = |(id, _, values)| Candidate { version: Some(id), values };
        Ok(rows.into_iter().map(candidate).collect())
    }

    /// Returns the other serializable transaction whose change of a version the snapshot does not see.
    fn unseen_writer(&self, version: &Version) -> Option<crate::storage::transaction::Xid> {
        let snapshot = &self.actor.snapshot;
        let stamp = if snapshot.sees(version.created) { version.deleted? } else { version.created };
        match stamp {
            _ if snapshot.sees(stamp) => None,
            Stamp::Open { xid, .. } => Some(xid),
            Stamp::At(commit) => self.store.serial.of_commit(commit),
        }
    }

    fn note_reads(
        &mut self,
        table: TableId,
        lookup: Option<Lookup>,
        rows: &[crate::storage::table::RowId],
        missed: Vec<crate::storage::transaction::Xid>,
    ) -> Result<(), Stop> {
        let xid = self.actor.snapshot.xid;
        match lookup {
            None => self.store.serial.read_table(xid, table),
            Some(Lookup { index, key }) => {
                self.store.serial.read_key(xid, KeyRead { table, index, key });
                rows.iter().for_each(|row| self.store.serial.read_row(xid, table, *row));
            }
        }
        for writer in missed {
            self.store.serial.missed(xid, writer)?;
        }
        Ok(())
    }

    /// Returns the rows of a common table expression; it runs when it is needed first.
    pub(super) fn cte(&mut self, id: usize) -> Result<Arc<Rows>, Stop> {
        if let Some(rows) = self.cte_rows.get(&id) {
            return Ok(Arc::clone(rows));
        }
        let query = self.ctes.get(id).map(|cte| Arc::clone(&cte.query));
        let rows = match query {
            Some(query) => Arc::new(self.query(&query, None)?),
            None => Arc::default(),
        };
        self.cte_rows.insert(id, Arc::clone(&rows));
        Ok(rows)
    }
}

fn put(tuple: &mut Tuple, number: usize, item: &Item, candidate: Candidate) {
    let places = tuple.values.iter_mut().skip(item.offset);
    places.zip(candidate.values).for_each(|(place, value)| *place = value);
    if let Some(version) = tuple.versions.get_mut(number) {
        *version = candidate.version;
    }
}

/// Returns all versions, or those that have the key in an index.
fn versions<'t>(table: &'t Table, lookup: Option<&Lookup>) -> Vec<(VersionId, &'t Version)> {
    let Some(lookup) = lookup else {
        return table.data.versions.iter().map(|(id, version)| (*id, version)).collect();
    };
    let Some(entries) = table.data.entries.get(lookup.index) else { return Vec::new() };
    let from = entries.0.range(lookup.key.clone()..);
    let ids = from.take_while(|(key, _)| key.starts_with(&lookup.key)).flat_map(|(_, ids)| ids);
    let mut found: Vec<_> = ids.filter_map(|id| Some((*id, table.data.versions.get(id)?))).collect();
    found.sort_by_key(|(id, _)| *id);
    found
}
