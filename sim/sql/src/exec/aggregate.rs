//! Results of aggregates.

use crate::error::SqlError;
use crate::functions::arithmetic::{Operation, apply};
use crate::functions::of_value;
use crate::plan::expr::Aggregate;
use crate::value::types::Type;
use crate::value::{Json, Value};

/// Returns the result of an aggregate over the arguments of its calls.
pub(super) fn result(function: Aggregate, inputs: Vec<Vec<Value>>) -> Result<Value, SqlError> {
    let keeps_null = matches!(
        function,
        Aggregate::CountRows | Aggregate::ArrayAgg | Aggregate::JsonbAgg(_) | Aggregate::JsonbObjectAgg(_)
    );
    let inputs: Vec<_> = inputs
        .into_iter()
        .filter(|args| keeps_null || args.first().is_some_and(|value| !value.is_null()))
        .collect();
    let count = i64::try_from(inputs.len()).unwrap_or(i64::MAX);
    if let Aggregate::Count | Aggregate::CountRows = function {
        return Ok(Value::Int(count));
    }
    if inputs.is_empty() {
        return Ok(Value::Null);
    }
    let firsts = || inputs.iter().filter_map(|args| args.first()).cloned();
    let all_true = |wanted: bool| firsts().any(|value| matches!(value, Value::Bool(is) if is == wanted));
    Ok(match function {
        Aggregate::Count | Aggregate::CountRows => Value::Int(count),
        Aggregate::Sum(r#type) => sum(r#type, firsts())?,
        Aggregate::Average(r#type) => {
            let divisor = match r#type {
                Type::Numeric => Value::Numeric(count.into()),
                #[allow(clippy::cast_precision_loss, reason = "as PostgreSQL does")]
                _ => Value::Float8(count as f64),
            };
            apply(Operation::Divide, r#type, &sum(r#type, firsts())?, &divisor)?
        }
        Aggregate::Min => firsts().min().unwrap_or(Value::Null),
        Aggregate::Max => firsts().max().unwrap_or(Value::Null),
        Aggregate::BoolAnd => Value::Bool(!all_true(false)),
        Aggregate::BoolOr => Value::Bool(all_true(true)),
        Aggregate::StringAgg => Value::Text(joined(&inputs)),
        Aggregate::ArrayAgg => Value::Array(firsts().collect()),
        Aggregate::JsonbAgg(r#type) => {
            let items = firsts().map(|value| of_value(&value, r#type));
            checked(Json::Array(items.collect::<Result<_, _>>()?))?
        }
        Aggregate::JsonbObjectAgg(r#type) => {
            let field = |args: &Vec<Value>| match &args[..] {
                [Value::Text(key), value] => Ok((key.clone(), of_value(value, r#type)?)),
                _ => Err(SqlError::new("22023", "field name must not be null")),
            };
            checked(Json::object(inputs.iter().map(field).collect::<Result<_, _>>()?))?
        }
    })
}

fn checked(json: Json) -> Result<Value, SqlError> {
    json.check_levels()?;
    Ok(Value::Jsonb(json))
}

fn sum(r#type: Type, mut values: impl Iterator<Item = Value>) -> Result<Value, SqlError> {
    let first = values.next().unwrap_or(Value::Null);
    values.try_fold(first, |sum, value| apply(Operation::Add, r#type, &sum, &value))
}

/// Joins texts, each but the first behind its own separator.
fn joined(inputs: &[Vec<Value>]) -> String {
    let mut text = String::new();
    for (number, args) in inputs.iter().enumerate() {
        if number > 0 {
            text.push_str(&args.get(1).and_then(Value::text).unwrap_or_default());
        }
        text.push_str(&args.first().and_then(Value::text).unwrap_or_default());
    }
    text
}
