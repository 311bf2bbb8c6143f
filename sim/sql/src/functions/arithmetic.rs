//! Arithmetic of numbers, points in time and intervals.

use bigdecimal::{ToPrimitive, Zero};

use crate::error::SqlError;
use crate::value::types::Type;
use crate::value::{Interval, Json, Value, date, fits, numeric};

/// Arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

fn zero() -> SqlError {
    SqlError::new("22012", "division by zero")
}

/// Applies an operation to two values; `r#type` is that of the result.
pub(crate) fn apply(op: Operation, r#type: Type, a: &Value, b: &Value) -> Result<Value, SqlError> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => integers(op, r#type, *a, *b),
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(match op {
            Operation::Add => a + b,
            Operation::Subtract => a - b,
            Operation::Multiply => a * b,
            Operation::Divide => numeric::divide(a, b).ok_or_else(zero)?,
            Operation::Modulo if b.is_zero() => return Err(zero()),
            Operation::Modulo => a % b,
        })),
        (Value::Float8(a), Value::Float8(b)) => floats(op, *a, *b, |exact| exact).map(Value::Float8),
        #[allow(clippy::cast_possible_truncation, reason = "the operation of floats of this size")]
        (Value::Float4(a), Value::Float4(b)) => {
            let narrow = |exact: f64| f64::from(exact as f32);
            floats(op, f64::from(*a), f64::from(*b), narrow).map(|sum| Value::Float4(sum as f32))
        }
        _ => times(op, a, b),
    }
}

fn integers(op: Operation, r#type: Type, a: i64, b: i64) -> Result<Value, SqlError> {
    if b == 0 && matches!(op, Operation::Divide | Operation::Modulo) {
        return Err(zero());
    }
    let result = match op {
        Operation::Add => a.checked_add(b),
        Operation::Subtract => a.checked_sub(b),
        Operation::Multiply => a.checked_mul(b),
        Operation::Divide => a.checked_div(b),
        Operation::Modulo => Some(a.wrapping_rem(b)),
    };
    let result = result.filter(|result| fits(r#type, *result));
    result.map(Value::Int).ok_or_else(|| SqlError::new("22003", format!("{} out of range", r#type.name())))
}

/// Applies an operation; `narrow` rounds its result to the size of the type.
fn floats(op: Operation, a: f64, b: f64, narrow: impl Fn(f64) -> f64) -> Result<f64, SqlError> {
    let result = narrow(match op {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide if b == 0.0 => return Err(zero()),
        Operation::Divide => a / b,
        Operation::Modulo => return Err(SqlError::unknown("the remainder of double precision")),
    });
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(SqlError::new("22003", "value out of range: overflow"));
    }
    let is_scaled = match op {
        Operation::Multiply => b != 0.0,
        Operation::Divide => b.is_finite(),
        _ => false,
    };
    if result == 0.0 && a != 0.0 && is_scaled {
        return Err(SqlError::new("22003", "value out of range: underflow"));
    }
    Ok(result)
}

/// Applies an operation to points in time, intervals, or `jsonb` and a key.
fn times(op: Operation, a: &Value, b: &Value) -> Result<Value, SqlError> {
    let range = |what: &str| SqlError::new("22008", format!("{what} out of range"));
    let moved = |micros: i64, by: &Interval| {
        let by = if op == Operation::Subtract { by.negated() } else { Some(*by) };
        by.and_then(|by| date::add(micros, by)).ok_or_else(|| range("timestamp"))
    };
    Ok(match (a, b, op) {
        (Value::Timestamptz(at), Value::Interval(by), _)
        | (Value::Interval(by), Value::Timestamptz(at), _) => Value::Timestamptz(moved(*at, by)?),
        (Value::Timestamp(at), Value::Interval(by), _) | (Value::Interval(by), Value::Timestamp(at), _) => {
            Value::Timestamp(moved(*at, by)?)
        }
        (Value::Date(day), Value::Interval(by), _) | (Value::Interval(by), Value::Date(day), _) => {
            Value::Timestamp(moved(date::micros_of_days(*day)?, by)?)
        }
        (Value::Timestamptz(a), Value::Timestamptz(b), Operation::Subtract)
        | (Value::Timestamp(a), Value::Timestamp(b), Operation::Subtract) => {
            if [a, b].into_iter().any(|at| matches!(*at, i64::MIN | i64::MAX)) {
                return Err(SqlError::new("22008", "cannot subtract infinite timestamps"));
            }
            let micros = a.checked_sub(*b).ok_or_else(|| range("interval"))?;
            let days = i32::try_from(micros / date::DAY).map_err(|_| range("interval"))?;
            Value::Interval(Interval { months: 0, days, micros: micros % date::DAY })
        }
        (Value::Date(i32::MIN | i32::MAX), Value::Date(_), Operation::Subtract)
        | (Value::Date(_), Value::Date(i32::MIN | i32::MAX), Operation::Subtract) => {
            return Err(SqlError::new("22008", "cannot subtract infinite dates"));
        }
        (Value::Date(a), Value::Date(b), Operation::Subtract) => Value::Int(i64::from(*a) - i64::from(*b)),
        (Value::Date(day), Value::Int(by), _) => {
            let by = if op == Operation::Subtract { by.checked_neg() } else { Some(*by) };
            Value::Date(date::add_days(*day, by.ok_or_else(|| range("date"))?)?)
        }
        (Value::Interval(a), Value::Interval(b), Operation::Add) => {
            Value::Interval(a.plus(*b).ok_or_else(|| range("interval"))?)
        }
        (Value::Interval(a), Value::Interval(b), Operation::Subtract) => {
            let difference = b.negated().and_then(|b| a.plus(b));
            Value::Interval(difference.ok_or_else(|| range("interval"))?)
        }
        (Value::Interval(a), Value::Float8(by), Operation::Multiply)
        | (Value::Float8(by), Value::Interval(a), Operation::Multiply) => {
            Value::Interval(a.times(*by).ok_or_else(|| range("interval"))?)
        }
        (Value::Interval(_), Value::Float8(0.0), Operation::Divide) => return Err(zero()),
        (Value::Interval(a), Value::Float8(by), Operation::Divide) => {
            Value::Interval(a.times(1.0 / by).ok_or_else(|| range("interval"))?)
        }
        (Value::Jsonb(json), key, Operation::Subtract) => Value::Jsonb(without(json, key)?),
        _ => return Err(SqlError::unknown("this arithmetic")),
    })
}

/// Removes a key of an object, or an element of an array.
fn without(json: &Json, key: &Value) -> Result<Json, SqlError> {
    Ok(match (json, key) {
        (Json::Object(fields), Value::Text(key)) => {
            Json::Object(fields.iter().filter(|(name, _)| name != key).cloned().collect())
        }
        (Json::Array(items), Value::Text(key)) => {
            let is_key = |item: &&Json| !matches!(item, Json::String(text) if text == key);
            Json::Array(items.iter().filter(is_key).cloned().collect())
        }
        (Json::Array(items), Value::Int(index)) => {
            let mut items = items.clone();
            if let Some(place) = crate::value::json::place(*index, items.len()).filter(|p| *p < items.len()) {
                items.remove(place);
            }
            Json::Array(items)
        }
        (Json::Object(_), Value::Int(_)) => {
            return Err(SqlError::new("22023", "cannot delete from object using integer index"));
        }
        _ => return Err(SqlError::new("22023", "cannot delete from scalar")),
    })
}

/// Returns the number with the other sign.
pub(crate) fn negate(value: &Value, r#type: Type) -> Result<Value, SqlError> {
    Ok(match value {
        Value::Int(number) => {
            let negated = number.checked_neg().filter(|number| fits(r#type, *number));
            let range = || SqlError::new("22003", format!("{} out of range", r#type.name()));
            Value::Int(negated.ok_or_else(range)?)
        }
        Value::Numeric(number) => Value::Numeric(-number),
        Value::Float8(number) => Value::Float8(-number),
        Value::Float4(number) => Value::Float4(-number),
        Value::Interval(interval) => {
            let range = || SqlError::new("22008", "interval out of range");
            Value::Interval(interval.negated().ok_or_else(range)?)
        }
        other => other.clone(),
    })
}

/// Returns a number as floating point.
pub(super) fn as_f64(value: &Value) -> f64 {
    match value {
        Value::Int(number) => number.to_f64().unwrap_or_default(),
        Value::Numeric(number) => number.to_f64().unwrap_or_default(),
        Value::Float8(number) => *number,
        Value::Float4(number) => f64::from(*number),
        _ => 0.0,
    }
}
