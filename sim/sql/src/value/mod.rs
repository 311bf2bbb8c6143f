//! Values: their text as PostgreSQL prints and reads it, and their order.

pub(crate) mod array;
pub(crate) mod bytes;
pub(crate) mod date;
pub(crate) mod float;
pub(crate) mod interval;
pub(crate) mod json;
pub(crate) mod numeric;
pub(crate) mod types;

use std::cmp::Ordering;

use bigdecimal::BigDecimal;

pub use self::interval::Interval;
pub use self::json::Json;
use self::types::Type;
use crate::error::SqlError;

/// A value of a column, a parameter or an expression. The type is known beside it.
#[derive(Clone, Debug)]
pub enum Value {
    /// NULL of any type.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `smallint`, `integer`, `bigint`, `oid`.
    Int(i64),
    /// `real`.
    Float4(f32),
    /// `double precision`.
    Float8(f64),
    /// `numeric`; its scale is the number of digits that it prints. No `NaN` and no infinity.
    Numeric(BigDecimal),
    /// `text`, `varchar`, `name`, `regclass`, and literals of unknown type.
    Text(String),
    /// `bytea`.
    Bytea(Vec<u8>),
    /// `json`: the text as it was given.
    Json(String),
    /// `jsonb`.
    Jsonb(Json),
    /// `timestamptz`: microseconds since 2000-01-01 UTC; `i64::MIN` and `i64::MAX` are the infinities.
    Timestamptz(i64),
    /// `timestamp`: the same without a time zone.
    Timestamp(i64),
    /// `date`: days since 2000-01-01; `i32::MIN` and `i32::MAX` are the infinities.
    Date(i32),
    /// `interval`.
    Interval(Interval),
    /// `uuid`.
    Uuid(u128),
    /// An array of one dimension.
    Array(Vec<Value>),
    /// A row.
    Record(Vec<Value>),
    /// The result of functions without a result.
    Void,
}

impl Value {
    /// Returns the text of the value as PostgreSQL prints it; `None` for NULL.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(true) => "t".to_owned(),
            Self::Bool(false) => "f".to_owned(),
            Self::Int(number) => number.to_string(),
            Self::Float4(number) => float::text4(*number),
            Self::Float8(number) => float::text8(*number),
            Self::Numeric(number) => numeric::text(number),
            Self::Text(text) | Self::Json(text) => text.clone(),
            Self::Bytea(bytes) => format!("\\x{}", hex::encode(bytes)),
            Self::Jsonb(json) => json.to_string(),
            Self::Timestamptz(micros) => date::text_with_zone(*micros),
            Self::Timestamp(micros) => date::text(*micros),
            Self::Date(days) => date::text_of_days(*days),
            Self::Interval(interval) => interval.to_string(),
            Self::Uuid(bits) => bytes::uuid_text(*bits),
            Self::Array(items) => array::text(items),
            Self::Record(fields) => array::record_text(fields),
            Self::Void => String::new(),
        })
    }

    /// Reads a value from its text.
    ///
    /// # Errors
    ///
    /// 22P02, 22003, 22007 or 22008, as PostgreSQL reports a text that is no value of the type.
    pub fn parse(r#type: Type, text: &str) -> Result<Self, SqlError> {
        Ok(match r#type {
            Type::Bool => Self::Bool(parse_bool(text)?),
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid => Self::Int(parse_integer(r#type, text)?),
            Type::Float4 => Self::Float4(float::parse4(text)?),
            Type::Float8 => Self::Float8(float::parse8(text)?),
            Type::Numeric => Self::Numeric(numeric::parse(text)?),
            Type::Text | Type::Varchar | Type::Name | Type::Unknown | Type::Regclass => {
                Self::Text(text.to_owned())
            }
            Type::Bytea => Self::Bytea(bytes::parse_bytea(text)?),
            Type::Json => Self::Json(json::validated(text, Type::Json)?),
            Type::Jsonb => Self::Jsonb(Json::parse(text, Type::Jsonb)?),
            Type::Timestamptz => Self::Timestamptz(date::parse(text, r#type)?),
            Type::Timestamp => Self::Timestamp(date::parse(text, r#type)?),
            Type::Date => Self::Date(date::parse_days(text)?),
            Type::Interval => Self::Interval(interval::parse(text)?),
            Type::Uuid => Self::Uuid(bytes::parse_uuid(text)?),
            Type::Array(element) => Self::Array(array::parse(*element, text)?),
            Type::Bpchar | Type::Void | Type::Record => {
                return Err(SqlError::unknown(format_args!("values of type {}", r#type.name())));
            }
        })
    }

    /// Makes a `date` of the days since 2000-01-01, as the binary format has them.
    ///
    /// # Errors
    ///
    /// 22008 for a day that PostgreSQL does not know.
    pub fn date(days: i32) -> Result<Self, SqlError> {
        date::in_range(days).map(Self::Date)
    }

    /// Makes a `timestamp` of the microseconds since 2000-01-01, as the binary format has them.
    ///
    /// # Errors
    ///
    /// 22008 for a time that PostgreSQL does not know.
    pub fn timestamp(micros: i64) -> Result<Self, SqlError> {
        date::timestamp_in_range(micros).map(Self::Timestamp)
    }

    /// Makes a `timestamptz` of the microseconds since 2000-01-01 UTC, as the binary format has them.
    ///
    /// # Errors
    ///
    /// 22008 for a time that PostgreSQL does not know.
    pub fn timestamptz(micros: i64) -> Result<Self, SqlError> {
        date::timestamp_in_range(micros).map(Self::Timestamptz)
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the place of the kind in the order of values of several kinds, which no expression compares.
    fn kind(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Int(_) => 1,
            Self::Float4(_) => 2,
            Self::Float8(_) => 3,
            Self::Numeric(_) => 4,
            Self::Text(_) => 5,
            Self::Bytea(_) => 6,
            Self::Json(_) => 7,
            Self::Jsonb(_) => 8,
            Self::Timestamptz(_) => 9,
            Self::Timestamp(_) => 10,
            Self::Date(_) => 11,
            Self::Interval(_) => 12,
            Self::Uuid(_) => 13,
            Self::Array(_) => 14,
            Self::Record(_) => 15,
            Self::Void => 16,
            Self::Null => 17,
        }
    }
}

impl Ord for Value {
    /// Compares two values of one type; NULL is above all values.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) | (Self::Timestamptz(a), Self::Timestamptz(b)) => a.cmp(b),
            (Self::Timestamp(a), Self::Timestamp(b)) => a.cmp(b),
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::Float4(a), Self::Float4(b)) => float::compare(f64::from(*a), f64::from(*b)),
            (Self::Float8(a), Self::Float8(b)) => float::compare(*a, *b),
            (Self::Numeric(a), Self::Numeric(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) | (Self::Json(a), Self::Json(b)) => a.cmp(b),
            (Self::Bytea(a), Self::Bytea(b)) => a.cmp(b),
            (Self::Jsonb(a), Self::Jsonb(b)) => a.cmp(b),
            (Self::Interval(a), Self::Interval(b)) => a.cmp(b),
            (Self::Uuid(a), Self::Uuid(b)) => a.cmp(b),
            (Self::Array(a), Self::Array(b)) | (Self::Record(a), Self::Record(b)) => a.cmp(b),
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Value {}

/// Reports a text that is no value of a type: 22P02.
pub(crate) fn invalid(r#type: &str, text: &str) -> SqlError {
    SqlError::new("22P02", format!("invalid input syntax for type {type}: \"{text}\""))
}

fn parse_bool(text: &str) -> Result<bool, SqlError> {
    let word = text.trim().to_ascii_lowercase();
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || word == "1" {
        return Ok(true);
    }
    if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        return Ok(false);
    }
    Err(invalid("boolean", text))
}

fn parse_integer(r#type: Type, text: &str) -> Result<i64, SqlError> {
    let digits = text.trim().trim_start_matches(['+', '-']);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let signs = text.trim().len() - digits.len();
    if !is_number || signs > 1 {
        return Err(invalid(&r#type.name(), text));
    }
    let range =
        || SqlError::new("22003", format!("value \"{text}\" is out of range for type {}", r#type.name()));
    let number: i64 = text.trim().parse().map_err(|_| range())?;
    if fits(r#type, number) { Ok(number) } else { Err(range()) }
}

/// Returns whether the integer is one of the type.
pub(crate) fn fits(r#type: Type, number: i64) -> bool {
    match r#type {
        Type::Int2 => i16::try_from(number).is_ok(),
        Type::Int4 => i32::try_from(number).is_ok(),
        Type::Oid => u32::try_from(number).is_ok(),
        _ => true,
    }
}
