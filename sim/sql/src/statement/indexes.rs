//! The columns and the names of indexes.

use std::collections::BTreeSet;

use sqlparser::ast;

use super::ddl::constraint_name;
use crate::error::SqlError;
use crate::plan::binder::ident;
use crate::storage::table::{IndexDef, TableDef};

/// Returns the places of an index's columns.
pub(super) fn index_columns(def: &TableDef, columns: &[ast::IndexColumn]) -> Result<Vec<usize>, SqlError> {
    columns
        .iter()
        .map(|column| {
            let ast::Expr::Identifier(name) = &column.column.expr else {
                return Err(SqlError::unknown("indexes of expressions"));
            };
            let name = ident(name);
            let missing = || SqlError::new("42703", format!("column \"{name}\" does not exist"));
            def.column(&name).ok_or_else(missing)
        })
        .collect()
}

/// Makes the definition of a unique index for a constraint; `names` are those of all relations.
pub(super) fn unique_index(
    def: &TableDef,
    names: &mut BTreeSet<String>,
    given: Option<&ast::Ident>,
    columns: Vec<usize>,
    is_primary: bool,
) -> Result<IndexDef, SqlError> {
    let parts = columns.iter().filter_map(|place| def.columns.get(*place)).map(|c| c.name.as_str());
    let middle: Vec<_> = parts.collect();
    let middle = middle.join("_");
    let name = if is_primary {
        constraint_name(given, &[&def.name, "pkey"])
    } else {
        constraint_name(given, &[&def.name, &middle, "key"])
    };
    if given.is_some() && names.contains(&name) {
        return Err(SqlError::new("42P07", format!("relation \"{name}\" already exists")));
    }
    let name = if given.is_some() { name } else { free_name(names, &name) };
    names.insert(name.clone());
    Ok(IndexDef { name, columns, is_unique: true, is_primary, is_constraint: true, predicate: None })
}

/// Returns a name that no relation has: the first free number is put behind it.
pub(super) fn free_name(names: &BTreeSet<String>, name: &str) -> String {
    let mut free = name.to_owned();
    let mut number = 0;
    while names.contains(&free) {
        number += 1;
        free = format!("{name}{number}");
    }
    free
}
