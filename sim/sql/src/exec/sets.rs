//! Functions that return sets.

use super::run::{Env, Rows, Run};
use crate::error::SqlError;
use crate::plan::expr::{Expr, SetFunction};
use crate::storage::stop::Stop;
use crate::value::{Interval, Json, Value, date};

impl Run<'_> {
    pub(super) fn set_rows(
        &mut self,
        function: SetFunction,
        args: &[Expr],
        env: &Env<'_>,
    ) -> Result<Rows, Stop> {
        let args = args.iter().map(|arg| self.eval(arg, env)).collect::<Result<Vec<_>, _>>()?;
        if args.iter().any(Value::is_null) {
            return Ok(Vec::new());
        }
        let one = |value: Value| vec![value];
        Ok(match (function, &args[..]) {
            (SetFunction::GenerateSeries, _) => series(&args)?.into_iter().map(one).collect(),
            (SetFunction::Unnest, [Value::Array(items)]) => items.iter().cloned().map(one).collect(),
            (SetFunction::JsonbArrayElements, [Value::Jsonb(Json::Array(items))]) => {
                items.iter().map(|item| one(Value::Jsonb(item.clone()))).collect()
            }
            (SetFunction::JsonbArrayElementsText, [Value::Jsonb(Json::Array(items))]) => {
                items.iter().map(|item| one(item.as_text().map_or(Value::Null, Value::Text))).collect()
            }
            (SetFunction::JsonbEach, [Value::Jsonb(Json::Object(fields))]) => {
                let row = |(key, value): &(String, Json)| {
                    vec![Value::Text(key.clone()), Value::Jsonb(value.clone())]
                };
                fields.iter().map(row).collect()
            }
            (SetFunction::JsonbObjectKeys, [Value::Jsonb(Json::Object(fields))]) => {
                fields.iter().map(|(key, _)| one(Value::Text(key.clone()))).collect()
            }
            (SetFunction::JsonbEach, _) => {
                return Err(SqlError::new("22023", "cannot call jsonb_each on a non-object").into());
            }
            (SetFunction::JsonbObjectKeys, [Value::Jsonb(Json::Array(_))]) => {
                return Err(SqlError::new("22023", "cannot call jsonb_object_keys on an array").into());
            }
            (SetFunction::JsonbObjectKeys, _) => {
                return Err(SqlError::new("22023", "cannot call jsonb_object_keys on a scalar").into());
            }
            (_, [Value::Jsonb(Json::Object(_))]) => {
                return Err(SqlError::new("22023", "cannot extract elements from an object").into());
            }
            _ => return Err(SqlError::new("22023", "cannot extract elements from a scalar").into()),
        })
    }
}

fn series(args: &[Value]) -> Result<Vec<Value>, SqlError> {
    const MOST: usize = 1_000_000;
    let zero = || SqlError::new("22023", "step size cannot equal zero");
    let many = || SqlError::unknown(format_args!("series of more than {MOST} rows"));
    let mut values = Vec::new();
    match args {
        [Value::Int(from), Value::Int(to), rest @ ..] => {
            let step = if let [Value::Int(step)] = rest { *step } else { 1 };
            if step == 0 {
                return Err(zero());
            }
            let mut next = Some(*from);
            while let Some(value) = next.filter(|value| if step > 0 { value <= to } else { value >= to }) {
                if values.len() == MOST {
                    return Err(many());
                }
                values.push(Value::Int(value));
                next = value.checked_add(step);
            }
        }
        [from, to, Value::Interval(step)] => {
            let (make, from, to): (fn(i64) -> Value, i64, i64) = match (from, to) {
                (Value::Timestamptz(from), Value::Timestamptz(to)) => (Value::Timestamptz, *from, *to),
                (Value::Timestamp(from), Value::Timestamp(to)) => (Value::Timestamp, *from, *to),
                _ => return Err(SqlError::unknown("this series")),
            };
            let sign = step.cmp(&Interval::default());
            if sign.is_eq() {
                return Err(zero());
            }
            let mut next = Some(from);
            while let Some(at) = next.filter(|at| if sign.is_gt() { *at <= to } else { *at >= to }) {
                if values.len() == MOST {
                    return Err(many());
                }
                values.push(make(at));
                next = date::add(at, *step);
            }
        }
        _ => return Err(SqlError::unknown("this series")),
    }
    Ok(values)
}
