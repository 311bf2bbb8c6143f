//! `json` and `jsonb`. serde_json reads the syntax; numbers are decimal, as in `numeric`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use bigdecimal::BigDecimal;
use serde_json::value::RawValue;

use super::types::Type;
use crate::error::SqlError;

/// The most levels of arrays and objects: readers and printers use the stack for each.
const LEVELS_MAX: usize = 500;

/// A value of `jsonb`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, with its scale.
    Number(BigDecimal),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object: the keys are ordered by their lengths, then by their bytes.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads JSON; the last of equal keys counts.
    ///
    /// # Errors
    ///
    /// 22P02 for a text that is not JSON.
    pub(crate) fn parse(text: &str, r#type: Type) -> Result<Self, SqlError> {
        check_levels(text)?;
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| invalid(r#type, text, &error))?;
        Self::of_raw(raw, r#type)
    }

    fn of_raw(raw: &RawValue, r#type: Type) -> Result<Self, SqlError> {
        let text = raw.get().trim();
        let wrong = |error: serde_json::Error| invalid(r#type, text, &error);
        Ok(match text.as_bytes().first() {
            Some(b'n') => Self::Null,
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'"') => {
                let string: String = serde_json::from_str(text).map_err(wrong)?;
                if string.contains('\0') {
                    return Err(SqlError::new("22P05", "unsupported Unicode escape sequence")
                        .detail("\\u0000 cannot be converted to text."));
                }
                Self::String(string)
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
                Self::Array(items.into_iter().map(|i| Self::of_raw(i, r#type)).collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(wrong)?;
                let fields = fields.into_iter().map(|(key, raw)| Ok((key, Self::of_raw(raw, r#type)?)));
                Self::object(fields.collect::<Result<_, SqlError>>()?)
            }
            _ => Self::Number(super::numeric::parse(text)?),
        })
    }

    /// Refuses a value that would be too deep to be read back.
    pub(crate) fn check_levels(&self) -> Result<(), SqlError> {
        let is_nested = |json: &&Self| matches!(json, Self::Array(_) | Self::Object(_));
        let mut level: Vec<&Self> = Some(self).into_iter().filter(is_nested).collect();
        for _ in 0..LEVELS_MAX {
            if level.is_empty() {
                return Ok(());
            }
            let inner = level.iter().flat_map(|json| json.parts());
            level = inner.filter(is_nested).collect();
        }
        if level.is_empty() { Ok(()) } else { Err(SqlError::stack_depth()) }
    }

    /// Returns the elements of an array, or the values of an object.
    fn parts(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match self {
            Self::Array(items) => Box::new(items.iter()),
            Self::Object(fields) => Box::new(fields.iter().map(|(_, value)| value)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// Makes an object; the last of equal keys counts.
    pub(crate) fn object(fields: Vec<(String, Self)>) -> Self {
        let fields: BTreeMap<(usize, String), Self> =
            fields.into_iter().map(|(key, value)| ((key.len(), key), value)).collect();
        Self::Object(fields.into_iter().map(|((_, key), value)| (key, value)).collect())
    }

    /// Returns the value of a key of an object.
    pub(crate) fn field(&self, key: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns the element of an array; a negative index counts from the end.
    pub(crate) fn element(&self, index: i64) -> Option<&Self> {
        let Self::Array(items) = self else { return None };
        place(index, items.len()).and_then(|place| items.get(place))
    }

    /// Returns the value at a path of keys and indices.
    pub(crate) fn at_path(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |value, step| match value {
            Self::Object(_) => value.field(step),
            Self::Array(_) => value.element(step.parse().ok()?),
            _ => None,
        })
    }

    /// Returns the text as `->>` does: strings without quotes, `None` for `null`.
    pub(crate) fn as_text(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::String(string) => Some(string.clone()),
            _ => Some(self.to_string()),
        }
    }

    /// Returns whether the value contains the other one, as `@>` does.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(_), Self::Object(fields)) => {
                fields.iter().all(|(key, value)| self.field(key).is_some_and(|own| own.contains(value)))
            }
            (Self::Array(own), Self::Array(others)) => {
                others.iter().all(|other| own.iter().any(|own| own.is_like(other)))
            }
            (Self::Array(own), other) if !matches!(other, Self::Object(_)) => own.contains(other),
            _ => self == other,
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let is_nested = |json: &Self| matches!(json, Self::Array(_) | Self::Object(_));
        if is_nested(self) == is_nested(other) { self.contains(other) } else { self == other }
    }

    /// Returns the name as `jsonb_typeof` prints it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// Object > Array > Boolean > Number > String > Null.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::String(_) => 1,
            Self::Number(_) => 2,
            Self::Bool(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }
}

/// Returns the place of an index in an array.
pub(crate) fn place(index: i64, len: usize) -> Option<usize> {
    let from_end = i64::try_from(len).ok()?.checked_add(index)?;
    usize::try_from(if index < 0 { from_end } else { index }).ok()
}

impl Ord for Json {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (Self::Array(a), Self::Array(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
            (Self::Object(a), Self::Object(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Json {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Json {
    /// Prints `{"a": 1, "b": [1, 2]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => f.write_str(&super::numeric::text(number)),
            Self::String(string) => f.write_str(&quoted(string)),
            Self::Array(items) => {
                let items: Vec<_> = items.iter().map(Self::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Object(fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|(key, value)| format!("{}: {value}", quoted(key))).collect();
                write!(f, "{{{}}}", fields.join(", "))
            }
        }
    }
}

/// Returns a JSON string; only quotes, backslashes and control characters are escaped.
pub(crate) fn quoted(string: &str) -> String {
    serde_json::to_string(string).unwrap_or_default()
}

/// Returns the text if it is JSON.
pub(super) fn validated(text: &str, r#type: Type) -> Result<String, SqlError> {
    check_levels(text)?;
    let raw: Result<&RawValue, _> = serde_json::from_str(text);
    raw.map(|_| text.to_owned()).map_err(|error| invalid(r#type, text, &error))
}

/// Returns the fields of an object in a text, in their order, each as its text.
pub(crate) fn raw_field(text: &str, key: &str) -> Option<String> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    fields.get(key).map(|raw| raw.get().to_owned())
}

/// Returns the element of an array in a text, as its text.
pub(crate) fn raw_element(text: &str, index: i64) -> Option<String> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    place(index, items.len()).and_then(|place| items.get(place)).map(|raw| raw.get().to_owned())
}

/// Refuses a text with too many levels, before a parser that uses the stack for each reads it.
fn check_levels(text: &str) -> Result<(), SqlError> {
    let (mut levels, mut is_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'[' | b'{' => levels += 1,
            b']' | b'}' => levels = levels.saturating_sub(1),
            _ => {}
        }
        if levels > LEVELS_MAX {
            return Err(SqlError::stack_depth());
        }
    }
    Ok(())
}

/// PostgreSQL names the token; the place of it that serde_json reports is enough to find it.
fn invalid(_: Type, text: &str, error: &serde_json::Error) -> SqlError {
    let failed = SqlError::new("22P02", "invalid input syntax for type json");
    if error.is_eof() {
        return failed.detail("The input string ended unexpectedly.");
    }
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let from = error.column().saturating_sub(1);
    let token = token_at(line, from);
    if token.is_empty() { failed } else { failed.detail(format!("Token \"{token}\" is invalid.")) }
}

/// Returns the word that has the byte, or its character.
fn token_at(line: &str, at: usize) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let Some((before, after)) = line.split_at_checked(at) else { return String::new() };
    match after.chars().next() {
        Some(c) if is_word(c) => {
            let start: String = before.chars().rev().take_while(|c| is_word(*c)).collect();
            start.chars().rev().chain(after.chars().take_while(|c| is_word(*c))).collect()
        }
        other => other.into_iter().collect(),
    }
}
