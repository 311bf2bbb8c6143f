//! Arrays of one dimension, and rows, as text.

use super::Value;
use super::types::Type;
use crate::error::SqlError;

pub(super) fn text(items: &[Value]) -> String {
    let items: Vec<_> = items.iter().map(|item| item.text().map_or("NULL".to_owned(), quoted)).collect();
    format!("{{{}}}", items.join(","))
}

fn quoted(text: String) -> String {
    let is_plain = !text.is_empty()
        && !text.eq_ignore_ascii_case("null")
        && !text.contains(|c: char| c.is_whitespace() || "{}\",\\".contains(c));
    if is_plain { text } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

pub(super) fn record_text(fields: &[Value]) -> String {
    let field = |text: String| {
        let is_plain =
            !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "()\",\\".contains(c));
        if is_plain { text } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\"")) }
    };
    let fields: Vec<_> = fields.iter().map(|value| value.text().map_or(String::new(), field)).collect();
    format!("({})", fields.join(","))
}

/// Reads `{1,2,NULL}`.
pub(super) fn parse(element: Type, text: &str) -> Result<Vec<Value>, SqlError> {
    let malformed =
        |detail: &str| SqlError::new("22P02", format!("malformed array literal: \"{text}\"")).detail(detail);
    let inner = text
        .trim()
        .strip_prefix('{')
        .ok_or_else(|| malformed("Array value must start with \"{\" or dimension information."))?;
    let inner = inner.strip_suffix('}').ok_or_else(|| malformed("Unexpected end of input."))?;
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    if inner.trim_start().starts_with('{') {
        return Err(SqlError::unknown("arrays of several dimensions"));
    }
    split(inner).into_iter().map(|item| item.map_or(Ok(Value::Null), |t| Value::parse(element, &t))).collect()
}

/// Returns the texts of the elements; `None` for NULL.
fn split(inner: &str) -> Vec<Option<String>> {
    let (mut items, mut item) = (Vec::new(), String::new());
    let (mut is_quoted, mut in_quotes) = (false, false);
    let mut chars = inner.chars();
    let finish = |item: &mut String, is_quoted: bool| {
        let text = std::mem::take(item);
        if is_quoted {
            return Some(text);
        }
        let text = text.trim();
        (!text.eq_ignore_ascii_case("null")).then(|| text.to_owned())
    };
    while let Some(c) = chars.next() {
        match c {
            '\\' => item.extend(chars.next()),
            '"' => {
                in_quotes = !in_quotes;
                is_quoted = true;
            }
            ',' if !in_quotes => {
                items.push(finish(&mut item, is_quoted));
                is_quoted = false;
            }
            _ if is_quoted && !in_quotes && c.is_whitespace() => {}
            _ => item.push(c),
        }
    }
    items.push(finish(&mut item, is_quoted));
    items
}
