//! Calls of aggregates.

use sqlparser::ast;
use sqlparser::ast::{DuplicateTreatment, FunctionArg, FunctionArgExpr};

use super::binder::{Binder, span_of};
use super::calls::no_function;
use super::expr::{Aggregate, AggregateCall, Expr, Typed};
use crate::error::SqlError;
use crate::storage::table::Modified;
use crate::value::types::Type;

impl Binder<'_> {
    /// Resolves a call of an aggregate; `None` if the name is none.
    pub(super) fn aggregate(
        &mut self,
        name: &str,
        call: &ast::Function,
        args: &[FunctionArg],
        list: Option<&ast::FunctionArgumentList>,
    ) -> Result<Option<Typed>, SqlError> {
        const NAMES: [&str; 12] = [
            "count",
            "sum",
            "min",
            "max",
            "avg",
            "bool_and",
            "bool_or",
            "every",
            "string_agg",
            "array_agg",
            "jsonb_agg",
            "jsonb_object_agg",
        ];
        if !NAMES.contains(&name) {
            return Ok(None);
        }
        let at = self.position(span_of(&call.name));
        let clause = self.levels.last().and_then(|level| level.no_aggregates);
        if let Some(clause) = clause {
            let text = match clause {
                "aggregate" => "aggregate function calls cannot be nested".to_owned(),
                clause => format!("aggregate functions are not allowed in {clause}"),
            };
            return Err(SqlError::new("42803", text).at(at));
        }
        self.forbid_aggregates(Some("aggregate"));
        let bound = self.aggregate_call(name, call, args, list);
        self.forbid_aggregates(None);
        let (call, r#type) = bound?;
        let Some(level) = self.levels.last_mut() else {
            return Err(SqlError::new("42803", "aggregate functions are not allowed here").at(at));
        };
        let known = level.aggregates.iter().position(|known| *known == call);
        let number = known.unwrap_or_else(|| {
            level.aggregates.push(call);
            level.aggregates.len() - 1
        });
        Ok(Some(Typed { expr: Expr::Aggregate(number), r#type }))
    }

    /// Forbids aggregates in a clause of the current query, or allows them again.
    pub(super) fn forbid_aggregates(&mut self, clause: Option<&'static str>) {
        if let Some(level) = self.levels.last_mut() {
            level.no_aggregates = clause;
        }
    }

    fn aggregate_call(
        &mut self,
        name: &str,
        call: &ast::Function,
        args: &[FunctionArg],
        list: Option<&ast::FunctionArgumentList>,
    ) -> Result<(AggregateCall, Type), SqlError> {
        let is_distinct =
            list.is_some_and(|list| list.duplicate_treatment == Some(DuplicateTreatment::Distinct));
        let mut order = Vec::new();
        for clause in list.map_or(&[][..], |list| &list.clauses) {
            let ast::FunctionArgumentClause::OrderBy(keys) = clause else {
                return Err(SqlError::unknown(format_args!("{clause} in an aggregate")));
            };
            for key in keys {
                let typed = self.expr(&key.expr)?;
                let is_descending = super::query::is_descending(&key.options);
                let nulls_first = key.options.nulls_first.unwrap_or(is_descending);
                order.push((self.known(typed)?.expr, is_descending, nulls_first));
            }
        }
        let filter = match &call.filter {
            Some(filter) => {
                let typed = self.expr(filter)?;
                Some(self.condition(typed, "FILTER")?)
            }
            None => None,
        };
        let make = |function, args| AggregateCall { function, args, is_distinct, filter, order };
        if let ("count", [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]) = (name, args) {
            return Ok((make(Aggregate::CountRows, Vec::new()), Type::Int8));
        }
        let args = args.iter().map(|arg| self.argument(arg)).collect::<Result<Vec<_>, _>>()?;
        let args = args.into_iter().map(|arg| self.known(arg)).collect::<Result<Vec<_>, _>>()?;
        let types: Vec<_> = args.iter().map(|arg| arg.r#type).collect();
        let (function, wanted, r#type) =
            aggregate_of(name, &types).ok_or_else(|| no_function(name, &types))?;
        let mut converted = Vec::new();
        for (number, arg) in args.into_iter().enumerate() {
            let to = wanted.get(number).copied().flatten().unwrap_or(arg.r#type);
            converted.push(self.explicit(arg, Modified::plain(to))?);
        }
        Ok((make(function, converted), r#type))
    }
}

/// Returns the aggregate, the types to which its arguments are converted, and the type of its result.
fn aggregate_of(name: &str, types: &[Type]) -> Option<(Aggregate, Vec<Option<Type>>, Type)> {
    Some(match (name, types) {
        ("count", [_]) => (Aggregate::Count, vec![None], Type::Int8),
        ("sum", [Type::Int2 | Type::Int4]) => (Aggregate::Sum(Type::Int8), vec![None], Type::Int8),
        ("sum", [Type::Int8 | Type::Numeric]) => {
            (Aggregate::Sum(Type::Numeric), vec![Some(Type::Numeric)], Type::Numeric)
        }
        ("sum", [t @ (Type::Float4 | Type::Float8 | Type::Interval)]) => (Aggregate::Sum(*t), vec![None], *t),
        ("avg", [Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric]) => {
            (Aggregate::Average(Type::Numeric), vec![Some(Type::Numeric)], Type::Numeric)
        }
        ("avg", [Type::Float4 | Type::Float8]) => {
            (Aggregate::Average(Type::Float8), vec![Some(Type::Float8)], Type::Float8)
        }
        ("min" | "max", [t])
            if !matches!(t, Type::Json | Type::Jsonb | Type::Bool | Type::Uuid | Type::Bytea) =>
        {
            let function = if name == "min" { Aggregate::Min } else { Aggregate::Max };
            (function, vec![None], if *t == Type::Varchar { Type::Text } else { *t })
        }
        ("bool_and" | "every", [Type::Bool]) => (Aggregate::BoolAnd, vec![None], Type::Bool),
        ("bool_or", [Type::Bool]) => (Aggregate::BoolOr, vec![None], Type::Bool),
        ("string_agg", [a, b]) if a.is_text() && b.is_text() => {
            (Aggregate::StringAgg, vec![None, None], Type::Text)
        }
        ("array_agg", [t]) => (Aggregate::ArrayAgg, vec![None], t.array()?),
        ("jsonb_agg", [t]) => (Aggregate::JsonbAgg(*t), vec![None], Type::Jsonb),
        ("jsonb_object_agg", [_, t]) => {
            (Aggregate::JsonbObjectAgg(*t), vec![Some(Type::Text), None], Type::Jsonb)
        }
        _ => return None,
    })
}
