//! Functions of points in time and intervals.

use bigdecimal::BigDecimal;

use super::arithmetic::as_f64;
use super::builtin::Builtin;
use super::function;
use crate::error::SqlError;
use crate::value::types::Type;
use crate::value::{Interval, Value, date};

/// The functions. `EXTRACT` is `extract` of a text and a value.
pub(super) static FUNCTIONS: &[Builtin] = &[
    function("extract", &[Type::Text, Type::Timestamptz], Type::Numeric, extract),
    function("extract", &[Type::Text, Type::Timestamp], Type::Numeric, extract),
    function("extract", &[Type::Text, Type::Date], Type::Numeric, extract),
    function("extract", &[Type::Text, Type::Interval], Type::Numeric, extract),
    function("date_part", &[Type::Text, Type::Timestamptz], Type::Float8, date_part),
    function("date_part", &[Type::Text, Type::Timestamp], Type::Float8, date_part),
    function("date_part", &[Type::Text, Type::Interval], Type::Float8, date_part),
    function("date_trunc", &[Type::Text, Type::Timestamptz], Type::Timestamptz, truncate),
    function("date_trunc", &[Type::Text, Type::Timestamp], Type::Timestamp, truncate),
    function("to_timestamp", &[Type::Float8], Type::Timestamptz, to_timestamp),
    function("timezone", &[Type::Text, Type::Timestamptz], Type::Timestamp, in_zone),
    function("timezone", &[Type::Text, Type::Timestamp], Type::Timestamptz, in_zone),
];

/// Returns a number of units of 10^-`scale`.
fn decimal(units: impl Into<i128>, scale: i64) -> Value {
    let units: i128 = units.into();
    Value::Numeric(BigDecimal::new(units.into(), scale))
}

fn extract(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(field), value] = args else { return Ok(Value::Null) };
    let field = field.to_ascii_lowercase();
    match value {
        Value::Interval(interval) => of_interval(&field, *interval),
        Value::Timestamptz(micros) => of_time(&field, *micros, "timestamp with time zone"),
        Value::Timestamp(micros) => of_time(&field, *micros, "timestamp without time zone"),
        Value::Date(days) => match field.as_str() {
            _ if *days == i32::MIN || *days == i32::MAX => Err(of_infinity()),
            "epoch" => Ok(decimal((i64::from(*days) + date::EPOCH / date::DAY) * 86_400, 0)),
            "hour" | "minute" | "second" | "milliseconds" | "microseconds" => {
                Err(unsupported(&field, "date"))
            }
            _ => of_parts(&field, i64::from(*days), 0, "date"),
        },
        _ => Ok(Value::Null),
    }
}

fn unsupported(field: &str, r#type: &str) -> SqlError {
    SqlError::new("0A000", format!("unit \"{field}\" not supported for type {type}"))
}

fn of_time(field: &str, micros: i64, r#type: &str) -> Result<Value, SqlError> {
    if micros == i64::MAX || micros == i64::MIN {
        return Err(of_infinity());
    }
    of_parts(field, micros.div_euclid(date::DAY), micros.rem_euclid(date::DAY), r#type)
}

fn of_infinity() -> SqlError {
    SqlError::unknown("the parts of infinity")
}

fn of_parts(field: &str, day: i64, time: i64, r#type: &str) -> Result<Value, SqlError> {
    let (year, month, of_month) = date::civil(day);
    // 2000-01-01 was a Saturday.
    let weekday = (day + 6).rem_euclid(7);
    let whole = |number: i64| Ok(decimal(number, 0));
    match field {
        "epoch" => {
            let micros = i128::from(day) * i128::from(date::DAY) + i128::from(time);
            Ok(decimal(micros + i128::from(date::EPOCH), 6))
        }
        "year" => whole(if year > 0 { year } else { year - 1 }),
        "month" => whole(month),
        "day" => whole(of_month),
        "quarter" => whole((month - 1) / 3 + 1),
        "dow" => whole(weekday),
        "isodow" => whole(if weekday == 0 { 7 } else { weekday }),
        "doy" => whole(day - date::day_of(year, 1, 1) + 1),
        "timezone" => whole(0),
        _ => of_clock(field, time).ok_or_else(|| unrecognised(field, r#type)),
    }
}

fn unrecognised(field: &str, r#type: &str) -> SqlError {
    SqlError::new("22023", format!("unit \"{field}\" not recognized for type {type}"))
}

/// Returns a part of the time of the day.
fn of_clock(field: &str, micros: i64) -> Option<Value> {
    Some(match field {
        "hour" => decimal(micros / (3600 * date::SECOND), 0),
        "minute" => decimal(micros / (60 * date::SECOND) % 60, 0),
        "second" => decimal(micros % (60 * date::SECOND), 6),
        "milliseconds" => decimal(micros % (60 * date::SECOND), 3),
        "microseconds" => decimal(micros % (60 * date::SECOND), 0),
        _ => return None,
    })
}

fn of_interval(field: &str, interval: Interval) -> Result<Value, SqlError> {
    let whole = |number: i32| Ok(decimal(i64::from(number), 0));
    match field {
        "epoch" => {
            // A year has 365.25 days here.
            let years = i128::from(interval.months / 12) * 31_557_600;
            let months = i128::from(interval.months % 12) * 30 * 86_400;
            let seconds = years + months + i128::from(interval.days) * 86_400;
            Ok(decimal(seconds * i128::from(date::SECOND) + i128::from(interval.micros), 6))
        }
        "year" => whole(interval.months / 12),
        "month" => whole(interval.months % 12),
        "day" => whole(interval.days),
        _ => of_clock(field, interval.micros).ok_or_else(|| unrecognised(field, "interval")),
    }
}

fn date_part(args: &[Value]) -> Result<Value, SqlError> {
    extract(args).map(|value| if value.is_null() { value } else { Value::Float8(as_f64(&value)) })
}

fn truncate(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(field), value] = args else { return Ok(Value::Null) };
    let (Value::Timestamptz(micros) | Value::Timestamp(micros)) = value else { return Ok(Value::Null) };
    let to = |unit: i64| micros.div_euclid(unit).checked_mul(unit);
    let from_day = |day: i64| day.checked_mul(date::DAY);
    let day = micros.div_euclid(date::DAY);
    let (year, month, _) = date::civil(day);
    let start = match field.to_ascii_lowercase().as_str() {
        "microseconds" => Some(*micros),
        "milliseconds" => to(1000),
        "second" => to(date::SECOND),
        "minute" => to(60 * date::SECOND),
        "hour" => to(3600 * date::SECOND),
        "day" => from_day(day),
        "week" => from_day(day - (day + 5).rem_euclid(7)),
        "month" => from_day(date::day_of(year, month, 1)),
        "quarter" => from_day(date::day_of(year, (month - 1) / 3 * 3 + 1, 1)),
        "year" => from_day(date::day_of(year, 1, 1)),
        other => {
            let is_zoned = matches!(value, Value::Timestamptz(_));
            let r#type = if is_zoned { Type::Timestamptz } else { Type::Timestamp };
            return Err(unrecognised(other, &r#type.name()));
        }
    };
    let start = match *micros {
        i64::MIN | i64::MAX => *micros,
        // A time that does not fit is before the first one that PostgreSQL knows.
        _ => date::timestamp_in_range(start.unwrap_or(i64::MIN + 1))?,
    };
    Ok(match value {
        Value::Timestamptz(_) => Value::Timestamptz(start),
        _ => Value::Timestamp(start),
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "as PostgreSQL does")]
fn to_timestamp(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Float8(seconds)] = args else { return Ok(Value::Null) };
    let micros = (seconds * date::SECOND as f64).round();
    if micros.is_nan() || micros.abs() > 9.0e18 {
        return Err(SqlError::new("22008", format!("timestamp out of range: \"{seconds}\"")));
    }
    date::timestamp_in_range(micros as i64 - date::EPOCH).map(Value::Timestamptz)
}

fn in_zone(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(zone), value] = args else { return Ok(Value::Null) };
    if !["utc", "gmt", "etc/utc", "z"].contains(&zone.to_ascii_lowercase().as_str()) {
        return Err(SqlError::unknown(format_args!("the time zone \"{zone}\"; take UTC")));
    }
    Ok(match value {
        Value::Timestamptz(micros) => Value::Timestamp(*micros),
        Value::Timestamp(micros) => Value::Timestamptz(*micros),
        other => other.clone(),
    })
}
