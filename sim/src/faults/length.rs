//! The lengths of time in an action: how long it lasts, how far it moves a clock. Searches vary them without
//! knowing the action.

use std::fmt;
use std::sync::Arc;

use toml::Value;

use super::action::Action;
use super::table::Faults;
use crate::field_path::FieldPath;
use crate::span::{Shift, Span};

/// A length of time in the table of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A span of time.
    Span(Span),
    /// A shift of a clock.
    Shift(Shift),
}

impl Length {
    /// Returns the length in nanoseconds, without its sign.
    pub fn nanos(self) -> u64 {
        match self {
            Self::Span(span) => span.as_nanos(),
            Self::Shift(shift) => shift.as_nanos().unsigned_abs(),
        }
    }

    /// Returns the length of that many nanoseconds, with the same sign.
    #[must_use]
    pub fn with_nanos(self, nanos: u64) -> Self {
        match self {
            Self::Span(_) => Self::Span(Span::from_nanos(nanos)),
            Self::Shift(shift) => {
                let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
                Self::Shift(Shift::from_nanos(if shift.as_nanos() < 0 { -nanos } else { nanos }))
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().map(Self::Span).or_else(|_| text.parse().map(Self::Shift)).ok()
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span(span) => span.fmt(f),
            Self::Shift(shift) => shift.fmt(f),
        }
    }
}

impl dyn Action {
    /// Returns the lengths of time in its table, each with the name of its field. The field that the verb
    /// names is the target, even if it looks like a length.
    pub fn lengths(&self) -> Vec<(String, Length)> {
        let fields = self.fields();
        let length = |(field, value): (&str, &Value)| {
            let text = value.as_str().filter(|_| field != self.verb())?;
            Some((field.to_owned(), Length::parse(text)?))
        };
        fields.iter().filter_map(length).collect()
    }

    /// Returns the target as its table has it: the value of the field that the verb names.
    pub fn target(&self) -> String {
        let fields = self.fields();
        let target = fields.iter().find(|(field, _)| *field == self.verb());
        target.map_or_else(String::new, |(_, value)| in_words(value, " and "))
    }
}

impl Faults {
    /// Returns the action with another length in `field`. Returns `None` if its kind is not in the table, or
    /// the field can't have that length.
    pub fn with_length(&self, action: &dyn Action, field: &str, length: Length) -> Option<Arc<dyn Action>> {
        let fields = action.fields().with(field, Value::String(length.to_string()));
        self.read(&FieldPath::default(), fields).ok()
    }
}

/// Formats a target. A list of lists is the groups of a partition.
fn in_words(value: &Value, between: &str) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.iter().all(Value::is_array) => {
            values.iter().map(|value| in_words(value, ", ")).collect::<Vec<_>>().join(" | ")
        }
        Value::Array(values) => {
            values.iter().map(|value| in_words(value, between)).collect::<Vec<_>>().join(between)
        }
        other => other.to_string(),
    }
}
