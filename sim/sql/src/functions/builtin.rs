//! The form of functions of values alone.

use crate::error::SqlError;
use crate::value::Value;
use crate::value::types::Type;

/// A function that needs nothing but its arguments.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    /// The types of the arguments; `Void` is any type.
    pub(crate) args: &'static [Type],
    pub(crate) result: Type,
    /// Whether the last argument may be repeated, or left out.
    pub(crate) is_variadic: bool,
    /// Whether NULL makes NULL.
    pub(crate) is_strict: bool,
    pub(crate) run: fn(&[Value]) -> Result<Value, SqlError>,
}

impl PartialEq for Builtin {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.args == other.args
    }
}
