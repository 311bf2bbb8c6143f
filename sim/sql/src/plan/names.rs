//! The names of columns of the output.

use sqlparser::ast;
use sqlparser::ast::SelectItem;

use super::binder::{ident, name_parts};
use crate::value::types::Type;

/// Returns the name that PostgreSQL gives an expression of the output.
pub(super) fn name_of(expr: &ast::Expr) -> String {
    strong_name(expr).unwrap_or_else(|| match expr {
        ast::Expr::Cast { data_type, .. } => type_name(data_type),
        ast::Expr::TypedString(string) => type_name(&string.data_type),
        ast::Expr::Interval(_) => "interval".to_owned(),
        ast::Expr::Case { .. } => "case".to_owned(),
        _ => "?column?".to_owned(),
    })
}

fn strong_name(expr: &ast::Expr) -> Option<String> {
    use ast::Expr as E;
    match expr {
        E::Identifier(name) => Some(ident(name)),
        E::CompoundIdentifier(parts) => parts.last().map(ident),
        E::Function(function) => name_parts(&function.name).ok()?.pop(),
        E::Nested(inner) | E::Collate { expr: inner, .. } | E::Cast { expr: inner, .. } => strong_name(inner),
        E::CompoundFieldAccess { root, .. } => strong_name(root),
        E::Case { else_result: Some(otherwise), .. } => strong_name(otherwise),
        E::Exists { negated: false, .. } => Some("exists".to_owned()),
        E::Array(_) => Some("array".to_owned()),
        E::Extract { .. } => Some("extract".to_owned()),
        E::Ceil { .. } => Some("ceil".to_owned()),
        E::Floor { .. } => Some("floor".to_owned()),
        E::Position { .. } => Some("position".to_owned()),
        E::Substring { shorthand, .. } => Some(if *shorthand { "substr" } else { "substring" }.to_owned()),
        E::Trim { trim_where, .. } => Some(match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim".to_owned(),
            Some(ast::TrimWhereField::Trailing) => "rtrim".to_owned(),
            _ => "btrim".to_owned(),
        }),
        E::AtTimeZone { .. } => Some("timezone".to_owned()),
        E::Tuple(_) => Some("row".to_owned()),
        E::Subquery(query) => match &*query.body {
            ast::SetExpr::Select(select) => select.projection.first().map(|item| match item {
                SelectItem::UnnamedExpr(expr) => name_of(expr),
                SelectItem::ExprWithAlias { alias, .. } => ident(alias),
                _ => "?column?".to_owned(),
            }),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the internal name of a type: `int8` for `bigint`.
fn type_name(data_type: &ast::DataType) -> String {
    let r#type = super::literals::type_of(data_type).map(|modified| match modified.r#type {
        Type::Array(element) => *element,
        other => other,
    });
    match r#type {
        Ok(Type::Int2) => "int2".to_owned(),
        Ok(Type::Int4) => "int4".to_owned(),
        Ok(Type::Int8) => "int8".to_owned(),
        Ok(Type::Float4) => "float4".to_owned(),
        Ok(Type::Float8) => "float8".to_owned(),
        Ok(Type::Bool) => "bool".to_owned(),
        Ok(Type::Varchar) => "varchar".to_owned(),
        Ok(Type::Timestamptz) => "timestamptz".to_owned(),
        Ok(Type::Timestamp) => "timestamp".to_owned(),
        Ok(other) => other.name(),
        Err(_) => "?column?".to_owned(),
    }
}
