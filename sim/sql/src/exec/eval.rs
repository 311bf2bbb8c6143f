//! Values of expressions.

use std::sync::Arc;

use super::like;
use super::run::{Env, Rows, Run};
use crate::error::SqlError;
use crate::functions::{arithmetic, cast, of_value};
use crate::plan::expr::{Compare, Expr, Op, Subquery, SubqueryKind};
use crate::storage::stop::Stop;
use crate::value::{Json, Value};

impl Run<'_> {
    /// Returns the value of an expression.
    pub(super) fn eval(&mut self, expr: &Expr, env: &Env<'_>) -> Result<Value, Stop> {
        match expr {
            Expr::Const(value) => Ok(value.clone()),
            Expr::Param(number) => Ok(self.parameters.get(*number).cloned().unwrap_or(Value::Null)),
            Expr::Column { depth, index } => {
                let mut env = env;
                for _ in 0..*depth {
                    let Some(outer) = env.outer else { break };
                    env = outer;
                }
                let missing = || SqlError::new("XX000", "a column is missing");
                Ok(env.row.get(*index).cloned().ok_or_else(missing)?)
            }
            Expr::Aggregate(_) => Err(SqlError::new("XX000", "an aggregate outside of a group").into()),
            Expr::Call { op, args } => self.call(*op, args, env),
            Expr::Subquery(subquery) => self.subquery(subquery, env),
        }
    }

    /// Returns the value of an expression without columns.
    pub(crate) fn evaluate(&mut self, expr: &Expr) -> Result<Value, Stop> {
        self.eval(expr, &Env { row: &[], outer: None })
    }

    /// Returns whether a condition is true: not false and not NULL.
    pub(super) fn holds(&mut self, condition: &Expr, env: &Env<'_>) -> Result<bool, Stop> {
        Ok(matches!(self.eval(condition, env)?, Value::Bool(true)))
    }

    fn call(&mut self, op: Op, args: &[Expr], env: &Env<'_>) -> Result<Value, Stop> {
        match op {
            Op::And | Op::Or => self.connect(op == Op::And, args, env),
            Op::Case => {
                let mut rest = args;
                while let [when, then, tail @ ..] = rest {
                    if self.holds(when, env)? {
                        return self.eval(then, env);
                    }
                    rest = tail;
                }
                rest.first().map_or(Ok(Value::Null), |otherwise| self.eval(otherwise, env))
            }
            Op::Switch => {
                let Some((operand, mut rest)) = args.split_first() else { return Ok(Value::Null) };
                let operand = self.eval(operand, env)?;
                while let [when, then, tail @ ..] = rest {
                    let equal = Op::Compare(Compare::Eq);
                    let when = self.eval(when, env)?;
                    if self.apply(equal, vec![operand.clone(), when])? == Value::Bool(true) {
                        return self.eval(then, env);
                    }
                    rest = tail;
                }
                rest.first().map_or(Ok(Value::Null), |otherwise| self.eval(otherwise, env))
            }
            Op::Coalesce => {
                for arg in args {
                    let value = self.eval(arg, env)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            _ => {
                let values = args.iter().map(|arg| self.eval(arg, env)).collect::<Result<Vec<_>, _>>()?;
                self.apply(op, values)
            }
        }
    }

    /// `AND` and `OR` of three values.
    fn connect(&mut self, is_and: bool, args: &[Expr], env: &Env<'_>) -> Result<Value, Stop> {
        let mut is_unknown = false;
        for arg in args {
            match self.eval(arg, env)? {
                Value::Bool(value) if value != is_and => return Ok(Value::Bool(value)),
                Value::Bool(_) => {}
                _ => is_unknown = true,
            }
        }
        Ok(if is_unknown { Value::Null } else { Value::Bool(is_and) })
    }

    fn apply(&mut self, op: Op, mut values: Vec<Value>) -> Result<Value, Stop> {
        if let Op::Session(function) = op {
            return self.session_function(function, &values);
        }
        let has_null = values.iter().any(Value::is_null);
        let value = match (op, &mut values[..]) {
            (Op::Builtin(function), values) => {
                if function.is_strict && has_null {
                    return Ok(Value::Null);
                }
                (function.run)(values)?
            }
            (Op::IsNull, [value]) => Value::Bool(match value {
                Value::Record(fields) => fields.iter().all(Value::is_null),
                value => value.is_null(),
            }),
            (Op::Is(wanted), [value]) => Value::Bool(matches!(value, Value::Bool(is) if *is == wanted)),
            (Op::IsDistinct, [a, b]) => Value::Bool(a != b),
            (Op::NullIf, [a, b]) => {
                if !a.is_null() && a == b {
                    Value::Null
                } else {
                    std::mem::replace(a, Value::Null)
                }
            }
            (Op::Extreme { greatest }, values) => {
                let known = values.iter().filter(|value| !value.is_null());
                let found = if greatest { known.max() } else { known.min() };
                found.cloned().unwrap_or(Value::Null)
            }
            (Op::MakeArray, _) => Value::Array(values),
            (Op::Row, _) => Value::Record(values),
            (Op::ToJsonb(_) | Op::BuildArray | Op::BuildObject, values) => json(op, values)?,
            (Op::Elements { compare, all }, [left, right]) => elements(compare, all, left, right),
            (Op::Compare(compare), [Value::Record(a), Value::Record(b)]) => compare_rows(compare, a, b),
            _ if has_null => Value::Null,
            (_, values) => strict(op, values)?,
        };
        if let Value::Jsonb(json) = &value {
            json.check_levels()?;
        }
        Ok(value)
    }

    fn subquery(&mut self, subquery: &Subquery, env: &Env<'_>) -> Result<Value, Stop> {
        let rows = self.subquery_rows(subquery, env)?;
        let first = |row: Option<&Vec<Value>>| row.and_then(|row| row.first()).cloned();
        match subquery.kind {
            SubqueryKind::Exists => Ok(Value::Bool(!rows.is_empty())),
            SubqueryKind::Scalar => {
                if rows.len() > 1 {
                    let text = "more than one row returned by a subquery used as an expression";
                    return Err(SqlError::new("21000", text).into());
                }
                Ok(first(rows.first()).unwrap_or(Value::Null))
            }
            SubqueryKind::Array => Ok(Value::Array(rows.iter().filter_map(|row| first(Some(row))).collect())),
            SubqueryKind::Rows { compare, all } => {
                let left = subquery.left.iter().map(|left| self.eval(left, env));
                let left = left.collect::<Result<Vec<_>, _>>()?;
                let mut is_unknown = false;
                for row in rows.iter() {
                    match compare_rows(compare, &left, row) {
                        Value::Bool(is) if is != all => return Ok(Value::Bool(is)),
                        Value::Bool(_) => {}
                        _ => is_unknown = true,
                    }
                }
                Ok(if is_unknown { Value::Null } else { Value::Bool(all) })
            }
        }
    }

    /// Runs a subquery; one that reads no outer row runs once in a statement.
    fn subquery_rows(&mut self, subquery: &Subquery, env: &Env<'_>) -> Result<Arc<Rows>, Stop> {
        if subquery.is_correlated {
            return self.query(&subquery.query, Some(env)).map(Arc::new);
        }
        if let Some(rows) = self.subquery_rows.get(&subquery.id) {
            return Ok(Arc::clone(rows));
        }
        let rows = Arc::new(self.query(&subquery.query, Some(env))?);
        self.subquery_rows.insert(subquery.id, Arc::clone(&rows));
        Ok(rows)
    }
}

/// Applies an operation that makes NULL of NULL.
fn strict(op: Op, values: &mut [Value]) -> Result<Value, SqlError> {
    Ok(match (op, values) {
        (Op::Not, [Value::Bool(value)]) => Value::Bool(!*value),
        (Op::Compare(compare), [a, b]) => Value::Bool(compare.holds((*a).cmp(b))),
        (Op::Arithmetic(operation, r#type), [a, b]) => arithmetic::apply(operation, r#type, a, b)?,
        (Op::Negate(r#type), [value]) => arithmetic::negate(value, r#type)?,
        (Op::Cast { from, to, is_explicit }, [value]) => {
            cast::cast(std::mem::replace(value, Value::Null), from, to, is_explicit)?
        }
        (Op::Like { is_insensitive }, [Value::Text(text), Value::Text(pattern)]) => {
            let chars = |text: &str| -> Vec<char> {
                if is_insensitive { text.to_lowercase().chars().collect() } else { text.chars().collect() }
            };
            Value::Bool(like::matches(&chars(text), &chars(pattern))?)
        }
        (Op::Element, [Value::Array(items), Value::Int(index)]) => {
            let place = index.checked_sub(1).and_then(|place| usize::try_from(place).ok());
            place.and_then(|place| items.get(place)).cloned().unwrap_or(Value::Null)
        }
        (Op::ArrayLength { is_null_if_empty }, [Value::Array(items)]) => {
            if items.is_empty() && is_null_if_empty {
                Value::Null
            } else {
                Value::Int(i64::try_from(items.len()).unwrap_or(i64::MAX))
            }
        }
        _ => return Err(SqlError::unknown("this operation on these values")),
    })
}

/// Compares with any or all elements of an array.
fn elements(compare: Compare, all: bool, left: &Value, right: &Value) -> Value {
    let Value::Array(items) = right else { return Value::Null };
    let mut is_unknown = left.is_null() && !items.is_empty();
    for item in items {
        if item.is_null() || left.is_null() {
            is_unknown = true;
        } else if compare.holds(left.cmp(item)) != all {
            return Value::Bool(!all);
        }
    }
    if is_unknown { Value::Null } else { Value::Bool(all) }
}

/// Compares rows, field by field: NULL where the first fields that differ are unknown.
fn compare_rows(compare: Compare, a: &[Value], b: &[Value]) -> Value {
    let is_equality = matches!(compare, Compare::Eq | Compare::Ne);
    let mut is_unknown = false;
    for (a, b) in a.iter().zip(b) {
        if a.is_null() || b.is_null() {
            is_unknown = true;
            if !is_equality {
                return Value::Null;
            }
        } else if a != b {
            return Value::Bool(compare.holds(a.cmp(b)));
        }
    }
    if is_unknown { Value::Null } else { Value::Bool(compare.holds(std::cmp::Ordering::Equal)) }
}

fn json(op: Op, values: &mut [Value]) -> Result<Value, SqlError> {
    let take = |value: &mut Value| match std::mem::replace(value, Value::Null) {
        Value::Jsonb(json) => json,
        _ => Json::Null,
    };
    match (op, values) {
        // NULL stays NULL here; within an array or an object it becomes null.
        (Op::ToJsonb(_), [Value::Null]) => Ok(Value::Null),
        (Op::ToJsonb(r#type), [value]) => Ok(Value::Jsonb(of_value(value, r#type)?)),
        (Op::BuildArray, values) => Ok(Value::Jsonb(Json::Array(values.iter_mut().map(take).collect()))),
        (_, values) => {
            let mut fields = Vec::new();
            for (number, pair) in values.chunks_mut(2).enumerate() {
                let [key, value] = pair else { continue };
                if key.is_null() {
                    let text = format!("argument {}: key must not be null", number * 2 + 1);
                    return Err(SqlError::new("22023", text));
                }
                let key = take(key);
                if matches!(key, Json::Array(_) | Json::Object(_)) {
                    let text = "key value must be scalar, not array, composite, or json";
                    return Err(SqlError::new("22023", text));
                }
                fields.push((key.as_text().unwrap_or_default(), take(value)));
            }
            Ok(Value::Jsonb(Json::object(fields)))
        }
    }
}
