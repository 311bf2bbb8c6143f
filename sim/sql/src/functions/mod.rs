//! Functions and casts of values.

pub(crate) mod arithmetic;
pub(crate) mod builtin;
pub(crate) mod cast;
mod json;
mod math;
mod text;
mod time;

pub(crate) use self::json::of_value;

use self::builtin::Builtin;
use crate::error::SqlError;
use crate::value::Value;
use crate::value::types::Type;

/// Makes a function that takes all its arguments, and makes NULL of NULL.
const fn function(
    name: &'static str,
    args: &'static [Type],
    result: Type,
    run: fn(&[Value]) -> Result<Value, SqlError>,
) -> Builtin {
    Builtin { name, args, result, is_variadic: false, is_strict: true, run }
}

/// Returns the functions of a name.
pub(crate) fn named(name: &str) -> Vec<&'static Builtin> {
    let all = [text::FUNCTIONS, json::FUNCTIONS, math::FUNCTIONS, time::FUNCTIONS];
    all.into_iter().flatten().filter(|function| function.name == name).collect()
}
