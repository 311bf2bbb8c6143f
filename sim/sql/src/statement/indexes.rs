//! The columns and the names of indexes.

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

/// Makes the definition of a unique index for a constraint.
pub(super) fn unique_index(
    def: &TableDef,
    given: Option<&ast::Ident>,
    columns: Vec<usize>,
    is_primary: bool,
) -> IndexDef {
    let names = columns.iter().filter_map(|place| def.columns.get(*place)).map(|c| c.name.as_str());
    let middle: Vec<_> = names.collect();
    let middle = middle.join("_");
    let name = if is_primary {
        constraint_name(given, &[&def.name, "pkey"])
    } else {
        constraint_name(given, &[&def.name, &middle, "key"])
    };
    let mut unique = name.clone();
    let mut number = 0;
    while given.is_none() && def.indexes.iter().any(|index| index.name == unique) {
        number += 1;
        unique = format!("{name}{number}");
    }
    IndexDef { name: unique, columns, is_unique: true, is_primary, is_constraint: true, predicate: None }
}
