//! Values in the two formats of the protocol: as text, and in binary as PostgreSQL's functions `…send` and
//! `…recv` write and read them.

use bytes::{Buf, Bytes};
use sql::{Interval, SqlError, Type, Value};

use super::connection::protocol;
use super::frontend::utf8;

/// The number of the binary format.
const BINARY: i16 = 1;
/// The signs of a numeric.
const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;

/// Returns the format of the value with this number: `formats` has none for text, one for all, or one for
/// each.
pub(super) fn format(formats: &[i16], number: usize) -> i16 {
    match formats {
        [format] => *format,
        formats => formats.get(number).copied().unwrap_or(0),
    }
}

/// Encodes a value of the type; `None` is NULL.
///
/// # Errors
///
/// 0A000 for a type whose binary format is not known, 22023 for an unknown format.
pub(super) fn encode(value: &Value, r#type: Type, format: i16) -> Result<Option<Vec<u8>>, SqlError> {
    let Some(text) = value.text() else { return Ok(None) };
    match format {
        0 => Ok(Some(text.into_bytes())),
        BINARY => {
            let mut out = Vec::new();
            binary(value, r#type, &text, &mut out)?;
            Ok(Some(out))
        }
        other => Err(unsupported(other)),
    }
}

/// Decodes the parameter `$number`.
///
/// # Errors
///
/// 22P03 or 08P01 for bytes that are no value of the type, and those of its text.
pub(super) fn decode(bytes: &Bytes, r#type: Type, format: i16, number: usize) -> Result<Value, SqlError> {
    match format {
        0 => Value::parse(r#type, text(bytes)?),
        BINARY => {
            let mut input = Input(bytes.clone());
            let value = input.value(r#type)?;
            if !input.0.is_empty() {
                let problem = format!("incorrect binary data format in bind parameter {number}");
                return Err(SqlError::new("22P03", problem));
            }
            Ok(value)
        }
        other => Err(unsupported(other)),
    }
}

fn unsupported(format: i16) -> SqlError {
    SqlError::new("22023", format!("unsupported format code: {format}"))
}

/// Returns bytes as a text, which has no zero byte.
fn text(bytes: &[u8]) -> Result<&str, SqlError> {
    let text = utf8(bytes).map_err(|error| protocol(&error))?;
    match text.contains('\0') {
        true => Err(SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00")),
        false => Ok(text),
    }
}

fn no_binary(r#type: Type) -> SqlError {
    SqlError::unknown(format_args!("the binary format of type {}: ask for text", r#type.name()))
}

/// Appends the binary format of a value, whose text is `text`.
fn binary(value: &Value, r#type: Type, text: &str, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match (value, r#type) {
        (Value::Bool(is_true), _) => out.push(u8::from(*is_true)),
        (Value::Int(number), Type::Int2) => out.extend(narrow::<i16>(*number, r#type)?.to_be_bytes()),
        (Value::Int(number), Type::Int4) => out.extend(narrow::<i32>(*number, r#type)?.to_be_bytes()),
        (Value::Int(number), Type::Oid) => out.extend(narrow::<u32>(*number, r#type)?.to_be_bytes()),
        (Value::Int(number), Type::Int8) => out.extend(number.to_be_bytes()),
        (Value::Float4(number), _) => out.extend(number.to_be_bytes()),
        (Value::Float8(number), _) => out.extend(number.to_be_bytes()),
        (Value::Numeric(_), _) => numeric(text, out).ok_or_else(|| no_binary(r#type))?,
        (Value::Bytea(bytes), _) => out.extend(bytes),
        (Value::Jsonb(_), _) => {
            // The version of the format.
            out.push(1);
            out.extend(text.as_bytes());
        }
        (Value::Timestamptz(micros) | Value::Timestamp(micros), _) => out.extend(micros.to_be_bytes()),
        (Value::Date(days), _) => out.extend(days.to_be_bytes()),
        (Value::Interval(interval), _) => {
            out.extend(interval.micros.to_be_bytes());
            out.extend(interval.days.to_be_bytes());
            out.extend(interval.months.to_be_bytes());
        }
        (Value::Uuid(bits), _) => out.extend(bits.to_be_bytes()),
        (Value::Array(items), Type::Array(element)) => array(items, *element, out)?,
        (Value::Text(_) | Value::Json(_), _) if r#type != Type::Regclass => out.extend(text.as_bytes()),
        (Value::Void, _) => {}
        _ => return Err(no_binary(r#type)),
    }
    Ok(())
}

/// Returns an integer in the width of its type.
fn narrow<T: TryFrom<i64>>(number: i64, r#type: Type) -> Result<T, SqlError> {
    T::try_from(number).map_err(|_| SqlError::new("22003", format!("{} out of range", r#type.name())))
}

fn array(items: &[Value], element: Type, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let has_null = items.iter().any(|item| matches!(item, Value::Null));
    out.extend(i32::from(!items.is_empty()).to_be_bytes());
    out.extend(i32::from(has_null).to_be_bytes());
    out.extend(element.oid().to_be_bytes());
    if !items.is_empty() {
        out.extend(i32::try_from(items.len()).unwrap_or(i32::MAX).to_be_bytes());
        // The number of the first element.
        out.extend(1_i32.to_be_bytes());
    }
    for item in items {
        match encode(item, element, BINARY)? {
            None => out.extend((-1_i32).to_be_bytes()),
            Some(item) => {
                out.extend(i32::try_from(item.len()).unwrap_or(i32::MAX).to_be_bytes());
                out.extend(item);
            }
        }
    }
    Ok(())
}

/// Appends a numeric: its digits in base 10 000, with the exponent of the first one. `None` if it has too
/// many.
fn numeric(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (NEGATIVE, digits),
        None => (POSITIVE, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // Both parts in groups of four digits, from the point on.
    let lead = "0".repeat((4 - whole.len() % 4) % 4);
    let tail = "0".repeat((4 - fraction.len() % 4) % 4);
    let all = [&lead, whole, fraction, &tail].concat();
    let groups = all.as_bytes().chunks(4).map(|group| std::str::from_utf8(group).ok()?.parse::<u16>().ok());
    let groups: Vec<u16> = groups.collect::<Option<_>>()?;
    let first = groups.iter().position(|group| *group != 0).unwrap_or(groups.len());
    let last = groups.iter().rposition(|group| *group != 0).map_or(first, |last| last + 1);
    let weight = match first == last {
        true => 0,
        false => i16::try_from((lead.len() + whole.len()) / 4).ok()? - 1 - i16::try_from(first).ok()?,
    };
    out.extend(u16::try_from(last - first).ok()?.to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend(u16::try_from(fraction.len()).ok()?.to_be_bytes());
    groups[first..last].iter().for_each(|group| out.extend(group.to_be_bytes()));
    Some(())
}

/// The bytes of a value that are left to read.
struct Input(Bytes);

impl Input {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let bytes = self.0.first_chunk::<N>().copied().ok_or_else(insufficient)?;
        self.0.advance(N);
        Ok(bytes)
    }

    fn rest(&mut self) -> Bytes {
        self.0.split_off(0)
    }

    fn value(&mut self, r#type: Type) -> Result<Value, SqlError> {
        Ok(match r#type {
            Type::Bool => Value::Bool(self.take::<1>()? != [0]),
            Type::Int2 => Value::Int(i16::from_be_bytes(self.take()?).into()),
            Type::Int4 => Value::Int(i32::from_be_bytes(self.take()?).into()),
            Type::Int8 => Value::Int(i64::from_be_bytes(self.take()?)),
            Type::Oid => Value::Int(u32::from_be_bytes(self.take()?).into()),
            Type::Float4 => Value::Float4(f32::from_be_bytes(self.take()?)),
            Type::Float8 => Value::Float8(f64::from_be_bytes(self.take()?)),
            Type::Numeric => Value::parse(r#type, &self.numeric()?)?,
            Type::Bytea => Value::Bytea(self.rest().to_vec()),
            Type::Jsonb => match self.take::<1>()? {
                [1] => Value::parse(r#type, text(&self.rest())?)?,
                [other] => {
                    return Err(SqlError::new("XX000", format!("unsupported jsonb version number {other}")));
                }
            },
            Type::Timestamptz => Value::timestamptz(i64::from_be_bytes(self.take()?))?,
            Type::Timestamp => Value::timestamp(i64::from_be_bytes(self.take()?))?,
            Type::Date => Value::date(i32::from_be_bytes(self.take()?))?,
            Type::Interval => {
                let micros = i64::from_be_bytes(self.take()?);
                let days = i32::from_be_bytes(self.take()?);
                Value::Interval(Interval { months: i32::from_be_bytes(self.take()?), days, micros })
            }
            Type::Uuid => Value::Uuid(u128::from_be_bytes(self.take()?)),
            Type::Array(element) => self.array(*element)?,
            Type::Regclass | Type::Record | Type::Void => return Err(no_binary(r#type)),
            Type::Text | Type::Varchar | Type::Bpchar | Type::Name | Type::Unknown | Type::Json => {
                Value::parse(r#type, text(&self.rest())?)?
            }
        })
    }

    fn array(&mut self, element: Type) -> Result<Value, SqlError> {
        let dimensions = i32::from_be_bytes(self.take()?);
        let (_has_null, given) = (self.take::<4>()?, u32::from_be_bytes(self.take()?));
        if given != element.oid() {
            return Err(SqlError::new("42804", "wrong element type"));
        }
        match dimensions {
            0 => return Ok(Value::Array(Vec::new())),
            1 => {}
            _ => return Err(SqlError::unknown("arrays of more than one dimension")),
        }
        let (count, _first) = (i32::from_be_bytes(self.take()?), self.take::<4>()?);
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(match i32::from_be_bytes(self.take()?) {
                -1 => Value::Null,
                length => {
                    let length = usize::try_from(length).ok().filter(|length| *length <= self.0.len());
                    let mut item = Self(self.0.split_to(length.ok_or_else(insufficient)?));
                    let value = item.value(element)?;
                    if !item.0.is_empty() {
                        return Err(SqlError::new("22P03", "improper binary format in array element"));
                    }
                    value
                }
            });
        }
        Ok(Value::Array(items))
    }

    /// Reads a numeric as its text.
    fn numeric(&mut self) -> Result<String, SqlError> {
        let [count, weight, sign, scale] =
            [self.take()?, self.take()?, self.take()?, self.take()?].map(u16::from_be_bytes);
        if sign != POSITIVE && sign != NEGATIVE {
            return Err(SqlError::unknown("the numerics NaN and Infinity"));
        }
        let mut groups = Vec::new();
        for _ in 0..count {
            let group = u16::from_be_bytes(self.take()?);
            if group > 9999 {
                return Err(SqlError::new("22P03", "invalid digit in external \"numeric\" value"));
            }
            groups.push(group);
        }
        let weight = isize::from(weight.cast_signed());
        let group = |at: isize| usize::try_from(at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
        let whole: String = (0..=weight).map(|at| format!("{:04}", group(at))).collect();
        let scale = usize::from(scale);
        let after_point = weight + 1..weight + 1 + scale.div_ceil(4).cast_signed();
        let fraction: String = after_point.map(|at| format!("{:04}", group(at))).collect();
        let fraction = fraction.get(..scale).unwrap_or_default();
        let sign = if sign == NEGATIVE { "-" } else { "" };
        let point = if scale > 0 { "." } else { "" };
        Ok(format!("{sign}0{whole}{point}{fraction}"))
    }
}

fn insufficient() -> SqlError {
    SqlError::new("08P01", "insufficient data left in message")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes the value with this text, and returns the text of the decoded bytes.
    fn there_and_back(r#type: Type, text: &str) -> String {
        let value = Value::parse(r#type, text).unwrap();
        let bytes = Bytes::from(encode(&value, r#type, BINARY).unwrap().unwrap());
        decode(&bytes, r#type, BINARY, 1).unwrap().text().unwrap()
    }

    #[test]
    fn values_survive_the_binary_format() {
        for text in
            ["0", "0.00", "1", "-1", "12345.678", "10000", "0.0001", "-0.00012300", "99999999999999999999.5"]
        {
            assert_eq!(there_and_back(Type::Numeric, text), text);
        }
        for (r#type, text) in [
            (Type::Bool, "t"),
            (Type::Int2, "-7"),
            (Type::Int4, "70000"),
            (Type::Int8, "-5000000000"),
            (Type::Float8, "1.5"),
            (Type::Text, "größer"),
            (Type::Bytea, "\\x00ff"),
            (Type::Json, "{\"a\": 1}"),
            (Type::Jsonb, "{\"a\": 1}"),
            (Type::Timestamptz, "2024-02-29 12:00:00.5+00"),
            (Type::Date, "1999-12-31"),
            (Type::Interval, "1 mon 2 days 03:00:00"),
            (Type::Uuid, "00112233-4455-6677-8899-aabbccddeeff"),
            (Type::Array(&Type::Int4), "{1,NULL,3}"),
            (Type::Array(&Type::Text), "{}"),
        ] {
            assert_eq!(there_and_back(r#type, text), text, "{type:?}");
        }
    }

    #[test]
    fn a_numeric_has_the_bytes_of_postgres() {
        let mut out = Vec::new();
        numeric("-12345.678", &mut out).unwrap();
        // Three groups, the first one of weight 1, negative, three digits after the point.
        assert_eq!(out, [0, 3, 0, 1, 0x40, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c]);
    }

    #[test]
    fn bytes_of_a_wrong_length_are_refused() {
        let code = |bytes: &'static [u8]| {
            decode(&Bytes::from_static(bytes), Type::Int4, BINARY, 1).unwrap_err().code.clone()
        };
        assert_eq!(code(&[0; 3]), "08P01");
        assert_eq!(code(&[0; 5]), "22P03");
    }
}
