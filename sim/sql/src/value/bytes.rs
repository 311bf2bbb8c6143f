//! `bytea` and `uuid` as text.

use super::invalid;
use crate::error::SqlError;

/// Reads `\x` and hexadecimal digits, or the escape format.
pub(super) fn parse_bytea(text: &str) -> Result<Vec<u8>, SqlError> {
    let Some(digits) = text.strip_prefix("\\x") else { return parse_escaped(text) };
    let digits: String = digits.chars().filter(|c| !c.is_whitespace()).collect();
    if let Some(bad) = digits.chars().find(|c| !c.is_ascii_hexdigit()) {
        return Err(SqlError::new("22023", format!("invalid hexadecimal digit: \"{bad}\"")));
    }
    hex::decode(digits).map_err(|_| SqlError::new("22023", "invalid hexadecimal data: odd number of digits"))
}

fn parse_escaped(text: &str) -> Result<Vec<u8>, SqlError> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    loop {
        rest = match rest {
            [] => return Ok(bytes),
            [b'\\', b'\\', tail @ ..] => {
                bytes.push(b'\\');
                tail
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                tail
            }
            [b'\\', ..] => {
                return Err(SqlError::new("22P02", "invalid input syntax for type bytea"));
            }
            [byte, tail @ ..] => {
                bytes.push(*byte);
                tail
            }
        };
    }
}

/// Reads 32 hexadecimal digits, with or without hyphens and braces.
pub(super) fn parse_uuid(text: &str) -> Result<u128, SqlError> {
    let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
    let digits: String = inner.chars().filter(|c| *c != '-').collect();
    let is_uuid = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = is_uuid.then(|| u128::from_str_radix(&digits, 16).ok()).flatten();
    bits.ok_or_else(|| invalid("uuid", text))
}

pub(super) fn uuid_text(bits: u128) -> String {
    let digits = format!("{bits:032x}");
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}
