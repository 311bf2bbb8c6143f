//! The prepared statements and portals of a connection, and what ends them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sql::{Prepared, SqlError, Value};

use super::control::Control;
use super::core::Statement;

/// A prepared statement.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) prepared: Arc<Prepared>,
    pub(super) control: Control,
}

/// A bound statement.
#[derive(Clone, Debug)]
pub(super) struct Portal {
    pub(super) statement: Statement,
    pub(super) control: Control,
    /// The formats of the columns: none for text, one for all, or one for each.
    pub(super) formats: Vec<i16>,
    pub(super) state: State,
    /// The number of savepoints that were open when it was bound.
    pub(super) depth: usize,
}

#[derive(Clone, Debug)]
pub(super) enum State {
    /// It has not run.
    Bound,
    /// It has run. `rows` are left to return; `tag` follows on the last one.
    Run { rows: VecDeque<Vec<Value>>, tag: String },
    /// All rows were returned. Of a SELECT there are none left; no other statement can run again.
    Over { is_select: bool },
}

/// The prepared statements and portals of a connection.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) statements: BTreeMap<String, Known>,
    /// Those of the open transaction, explicit or implicit: none outlives it.
    pub(super) portals: BTreeMap<String, Portal>,
    /// The names of the open savepoints, the innermost one last.
    savepoints: Vec<String>,
}

impl Objects {
    /// Returns the number of open savepoints.
    pub(super) fn depth(&self) -> usize {
        self.savepoints.len()
    }

    /// Drops what ends with a transaction.
    pub(super) fn end_transaction(&mut self) {
        self.portals.clear();
        self.savepoints.clear();
    }

    /// Does what a statement does to them that has succeeded with this command tag.
    ///
    /// # Errors
    ///
    /// 26000 if it drops a prepared statement that does not exist.
    pub(super) fn apply(&mut self, control: &Control, tag: &str) -> Result<(), SqlError> {
        match control {
            Control::Deallocate(Some(name)) => {
                if self.statements.remove(name).is_none() {
                    return Err(no_statement(name));
                }
            }
            Control::Deallocate(None) => self.drop_statements(),
            Control::DiscardAll => {
                self.drop_statements();
                self.end_transaction();
            }
            Control::Savepoint(name) => self.savepoints.push(name.clone()),
            Control::Release(name) => {
                if let Some(place) = self.place(name) {
                    self.savepoints.truncate(place);
                    // They belong to the savepoint around it from now on.
                    self.portals.values_mut().for_each(|portal| portal.depth = portal.depth.min(place));
                }
            }
            Control::RollbackTo(name) => {
                if let Some(place) = self.place(name) {
                    self.savepoints.truncate(place + 1);
                    self.portals.retain(|_, portal| portal.depth <= place);
                }
            }
            Control::Other if matches!(tag, "COMMIT" | "ROLLBACK") => self.end_transaction(),
            Control::Other => {}
        }
        Ok(())
    }

    /// Drops the prepared statements. The one without a name is none of SQL's, and stays.
    fn drop_statements(&mut self) {
        self.statements.retain(|name, _| name.is_empty());
    }

    fn place(&self, savepoint: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|name| name == savepoint)
    }
}

/// Makes the error of a prepared statement that does not exist: 26000.
pub(super) fn no_statement(name: &str) -> SqlError {
    let problem = match name {
        "" => "unnamed prepared statement does not exist".to_owned(),
        name => format!("prepared statement \"{name}\" does not exist"),
    };
    SqlError::new("26000", problem)
}
