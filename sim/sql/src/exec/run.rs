//! The state of a statement that runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::SqlError;
use crate::plan::expr::{Cte, Expr};
use crate::session::{Entry, Session};
use crate::storage::catalog::Viewer;
use crate::storage::rows::Actor;
use crate::storage::stop::Stop;
use crate::storage::store::Store;
use crate::storage::table::TableId;
use crate::value::Value;

/// The rows of a query.
pub(crate) type Rows = Vec<Vec<Value>>;

/// The row of a query, and those of the queries around it.
#[derive(Clone, Copy)]
pub(super) struct Env<'e> {
    pub(super) row: &'e [Value],
    pub(super) outer: Option<&'e Env<'e>>,
}

/// The conditions of a table, resolved.
#[derive(Debug)]
pub(super) struct TableRules {
    /// Names and conditions.
    pub(super) checks: Vec<(String, Expr)>,
    /// The rows that each index has.
    pub(super) predicates: Vec<Option<Expr>>,
}

/// A foreign key to check at the end of the statement.
#[derive(Debug)]
pub(super) enum Reference {
    /// A row that refers to others: the values of the row.
    Child { table: TableId, values: Vec<Value> },
    /// A row that others may refer to, which is deleted or has another key: its values before.
    Parent { table: TableId, values: Vec<Value>, is_deleted: bool },
}

/// A statement that runs.
pub(crate) struct Run<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) session: &'a mut Session,
    pub(crate) actor: Actor,
    pub(crate) is_serializable: bool,
    pub(crate) parameters: &'a [Value],
    pub(crate) ctes: &'a [Cte],
    pub(crate) statement_micros: i64,
    pub(crate) clock_micros: i64,
    /// What the statement did before it waited.
    pub(crate) journal: Vec<Entry>,
    pub(crate) at: usize,
    pub(super) cte_rows: BTreeMap<usize, Arc<Rows>>,
    pub(super) subquery_rows: BTreeMap<usize, Arc<Rows>>,
    pub(super) rules: BTreeMap<TableId, Arc<TableRules>>,
    pub(super) references: Vec<Reference>,
    pub(crate) notices: Vec<SqlError>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        store: &'a mut Store,
        session: &'a mut Session,
        actor: Actor,
        parameters: &'a [Value],
        ctes: &'a [Cte],
    ) -> Self {
        Self {
            store,
            session,
            actor,
            is_serializable: false,
            parameters,
            ctes,
            statement_micros: 0,
            clock_micros: 0,
            journal: Vec::new(),
            at: 0,
            cte_rows: BTreeMap::new(),
            subquery_rows: BTreeMap::new(),
            rules: BTreeMap::new(),
            references: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Takes a step, or returns its result if the statement took it before it waited.
    pub(crate) fn once(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<Entry, Stop>,
    ) -> Result<Entry, Stop> {
        if let Some(entry) = self.journal.get(self.at) {
            let entry = entry.clone();
            self.at += 1;
            return Ok(entry);
        }
        let entry = step(self)?;
        self.journal.push(entry.clone());
        self.at = self.journal.len();
        Ok(entry)
    }

    /// Returns who looks names up.
    pub(crate) fn viewer(&self) -> Viewer {
        Viewer { xid: Some(self.actor.snapshot.xid), search_path: self.session.settings.search_path() }
    }
}

/// Makes the error of a result of the wrong kind in the journal, which is a fault of this crate: XX000.
pub(super) fn out_of_step() -> Stop {
    SqlError::new("XX000", "a statement that waited did not repeat its steps").into()
}
