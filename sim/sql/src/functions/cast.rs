//! Conversions of values from one type to another.

use bigdecimal::{BigDecimal, FromPrimitive, ToPrimitive};

use crate::error::SqlError;
use crate::storage::table::{Modified, Modifier};
use crate::value::types::Type;
use crate::value::{Json, Value, date, fits, numeric};

/// Converts a value; assignments (not explicit casts) refuse texts that are too long.
pub(crate) fn cast(value: Value, from: Type, to: Modified, is_explicit: bool) -> Result<Value, SqlError> {
    if value.is_null() {
        return Ok(value);
    }
    let value = if from == to.r#type { value } else { convert(value, from, to.r#type)? };
    limit(value, to.modifier, is_explicit)
}

/// Applies the limit of a declaration.
fn limit(value: Value, modifier: Modifier, is_explicit: bool) -> Result<Value, SqlError> {
    match (modifier, value) {
        (Modifier::Length(length), Value::Text(text)) if text.chars().count() > length => {
            let cut: String = text.chars().take(length).collect();
            let has_more = text.chars().skip(length).any(|c| c != ' ');
            if has_more && !is_explicit {
                let text = format!("value too long for type character varying({length})");
                return Err(SqlError::new("22001", text));
            }
            Ok(Value::Text(cut))
        }
        (Modifier::Digits(precision, scale), Value::Numeric(number)) => {
            let rounded = numeric::round(&number, scale);
            let limit = BigDecimal::new(1.into(), scale - precision);
            if rounded.abs() >= limit {
                let whole = precision - scale;
                return Err(SqlError::new("22003", "numeric field overflow").detail(format!(
                    "A field with precision {precision}, scale {scale} must round to an absolute value less \
                     than {}.",
                    if whole == 0 { "1".to_owned() } else { format!("10^{whole}") }
                )));
            }
            Ok(Value::Numeric(rounded))
        }
        (Modifier::Length(length), Value::Array(items)) => {
            let modifier = Modifier::Length(length);
            let items = items.into_iter().map(|item| limit(item, modifier, is_explicit));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        (_, value) => Ok(value),
    }
}

fn convert(value: Value, from: Type, to: Type) -> Result<Value, SqlError> {
    match (value, to) {
        (Value::Text(text), _) if !to.is_text() => parse_text(text, to),
        (value, Type::Text | Type::Varchar | Type::Name) => Ok(text_of(&value, from)),
        (Value::Array(items), Type::Array(element)) => {
            let Type::Array(old) = from else { return Err(no_cast(from, to)) };
            let items = items.into_iter().map(|item| match item {
                Value::Null => Ok(item),
                _ if old == element => Ok(item),
                _ => convert(item, *old, *element),
            });
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        (Value::Bool(value), Type::Int4) => Ok(Value::Int(i64::from(value))),
        (Value::Int(number), Type::Bool) => Ok(Value::Bool(number != 0)),
        (value, _) if to.is_number() || to == Type::Oid => to_number(value, from, to),
        (Value::Json(text), Type::Jsonb) => Ok(Value::Jsonb(Json::parse(&text, Type::Jsonb)?)),
        (Value::Jsonb(json), Type::Json) => Ok(Value::Json(json.to_string())),
        (Value::Jsonb(Json::Bool(value)), Type::Bool) => Ok(Value::Bool(value)),
        (value, _) => to_time(value, from, to),
    }
}

fn parse_text(text: String, to: Type) -> Result<Value, SqlError> {
    Value::parse(to, &text)
}

/// Returns the text; a boolean is a whole word here.
fn text_of(value: &Value, _from: Type) -> Value {
    match value {
        Value::Bool(true) => Value::Text("true".to_owned()),
        Value::Bool(false) => Value::Text("false".to_owned()),
        value => value.text().map_or(Value::Null, Value::Text),
    }
}

fn to_number(value: Value, from: Type, to: Type) -> Result<Value, SqlError> {
    let value = match value {
        Value::Jsonb(Json::Number(number)) => Value::Numeric(number),
        Value::Jsonb(json) => {
            let (is, to) = (json.type_name(), to.name());
            return Err(SqlError::new("22023", format!("cannot cast jsonb {is} to type {to}")));
        }
        value => value,
    };
    let range = || out_of_range(to);
    match (value, to) {
        (Value::Int(number), Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid) => {
            if fits(to, number) {
                Ok(Value::Int(number))
            } else {
                Err(range())
            }
        }
        (Value::Int(number), Type::Numeric) => Ok(Value::Numeric(number.into())),
        (Value::Int(number), Type::Float8) => Ok(Value::Float8(number.to_f64().unwrap_or_default())),
        (Value::Int(number), Type::Float4) => Ok(Value::Float4(number.to_f32().unwrap_or_default())),
        (Value::Numeric(number), Type::Float8 | Type::Float4) => Value::parse(to, &number.to_plain_string()),
        (Value::Numeric(number), Type::Numeric) => Ok(Value::Numeric(number)),
        (Value::Numeric(number), _) => {
            let whole = numeric::to_integer(&number).filter(|whole| fits(to, *whole));
            whole.map(Value::Int).ok_or_else(range)
        }
        (Value::Float8(number), _) => of_float(number, to, 15),
        (Value::Float4(number), Type::Float8) => Ok(Value::Float8(f64::from(number))),
        (Value::Float4(number), _) => of_float(f64::from(number), to, 6),
        _ => Err(no_cast(from, to)),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "checked, or to the nearest")]
fn of_float(number: f64, to: Type, digits: usize) -> Result<Value, SqlError> {
    match to {
        Type::Float4 => {
            let narrow = number as f32;
            if narrow.is_infinite() && number.is_finite() {
                return Err(SqlError::new("22003", "value out of range: overflow"));
            }
            Ok(Value::Float4(narrow))
        }
        Type::Numeric => {
            let text = format!("{number:.*e}", digits - 1);
            let parsed: Option<BigDecimal> = text.parse().ok();
            let parsed = parsed.ok_or_else(|| SqlError::unknown("numeric NaN and infinity"))?;
            let parsed = parsed.normalized();
            Ok(Value::Numeric(if numeric::scale(&parsed) < 0 { parsed.with_scale(0) } else { parsed }))
        }
        _ => {
            let whole = BigDecimal::from_f64(number.round_ties_even());
            let whole = whole.and_then(|whole| whole.to_i64()).filter(|whole| fits(to, *whole));
            whole.map(Value::Int).ok_or_else(|| out_of_range(to))
        }
    }
}

fn to_time(value: Value, from: Type, to: Type) -> Result<Value, SqlError> {
    Ok(match (value, to) {
        (Value::Timestamptz(micros), Type::Timestamp) => Value::Timestamp(micros),
        (Value::Timestamp(micros), Type::Timestamptz) => Value::Timestamptz(micros),
        (Value::Timestamptz(micros) | Value::Timestamp(micros), Type::Date) => {
            Value::Date(date::days_of_micros(micros))
        }
        (Value::Date(days), Type::Timestamp) => Value::Timestamp(date::micros_of_days(days)?),
        (Value::Date(days), Type::Timestamptz) => Value::Timestamptz(date::micros_of_days(days)?),
        _ => return Err(no_cast(from, to)),
    })
}

fn out_of_range(to: Type) -> SqlError {
    let name = if to == Type::Oid { "OID".to_owned() } else { to.name() };
    SqlError::new("22003", format!("{name} out of range"))
}

fn no_cast(from: Type, to: Type) -> SqlError {
    SqlError::new("42846", format!("cannot cast type {} to {}", from.name(), to.name()))
}
