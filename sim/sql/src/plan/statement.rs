//! A whole statement.

use std::sync::Arc;

use sqlparser::ast::Statement;

use super::binder::Binder;
use super::expr::{Body, Plan};
use crate::error::SqlError;
use crate::value::types::Type;

/// Resolves a query or a change of rows; `None` for another statement.
pub(crate) fn plan(mut binder: Binder<'_>, statement: &Statement) -> Result<Option<Plan>, SqlError> {
    let query = match statement {
        Statement::Query(query) => binder.alone(|binder| binder.query(query, false))?,
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
            let mut query = binder.alone(|binder| binder.change(statement))?;
            for number in 0..query.columns.len() {
                if query.columns.get(number).is_some_and(|column| column.r#type == Type::Unknown) {
                    binder.settle(&mut query, number, crate::storage::table::Modified::plain(Type::Text))?;
                }
            }
            query
        }
        _ => return Ok(None),
    };
    if let Some(number) = binder.parameters.iter().position(|r#type| *r#type == Type::Unknown) {
        let text = format!("could not determine data type of parameter ${}", number + 1);
        return Err(SqlError::new("42P18", text));
    }
    let has_columns = match &query.body {
        Body::Modify(modify) => modify.returning.is_some(),
        _ => true,
    };
    Ok(Some(Plan {
        query: Arc::new(query),
        ctes: binder.ctes,
        parameters: binder.parameters,
        tables: binder.tables.into_iter().collect(),
        has_columns,
    }))
}
