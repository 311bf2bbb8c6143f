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

/// Returns the functions of a name.
pub(crate) fn named(name: &str) -> Vec<&'static Builtin> {
    let all = [text::FUNCTIONS, json::FUNCTIONS, math::FUNCTIONS, time::FUNCTIONS];
    all.into_iter().flatten().filter(|function| function.name == name).collect()
}
