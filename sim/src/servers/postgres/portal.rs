//! Portals: bound statements, and their rows that are left to return.

use std::collections::VecDeque;

use sql::Value;

use super::core::Statement;

/// A bound statement.
#[derive(Clone, Debug)]
pub(super) struct Portal {
    pub(super) statement: Statement,
    /// The formats of the columns: none for text, one for all, or one for each.
    pub(super) formats: Vec<i16>,
    pub(super) state: State,
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
