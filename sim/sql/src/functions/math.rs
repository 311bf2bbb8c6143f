//! Functions of numbers.

use bigdecimal::{BigDecimal, RoundingMode, Signed};

use super::arithmetic;
use super::builtin::Builtin;
use super::function;
use crate::error::SqlError;
use crate::value::types::Type;
use crate::value::{Value, numeric};

/// The functions.
pub(super) static FUNCTIONS: &[Builtin] = &[
    function("abs", &[Type::Int2], Type::Int2, |args| abs(args, Type::Int2)),
    function("abs", &[Type::Int4], Type::Int4, |args| abs(args, Type::Int4)),
    function("abs", &[Type::Int8], Type::Int8, |args| abs(args, Type::Int8)),
    function("abs", &[Type::Numeric], Type::Numeric, |args| abs(args, Type::Numeric)),
    function("abs", &[Type::Float4], Type::Float4, |args| abs(args, Type::Float4)),
    function("abs", &[Type::Float8], Type::Float8, |args| abs(args, Type::Float8)),
    function("ceil", &[Type::Numeric], Type::Numeric, |args| rounded(args, RoundingMode::Ceiling)),
    function("ceil", &[Type::Float8], Type::Float8, |args| rounded(args, RoundingMode::Ceiling)),
    function("ceiling", &[Type::Numeric], Type::Numeric, |args| rounded(args, RoundingMode::Ceiling)),
    function("ceiling", &[Type::Float8], Type::Float8, |args| rounded(args, RoundingMode::Ceiling)),
    function("floor", &[Type::Numeric], Type::Numeric, |args| rounded(args, RoundingMode::Floor)),
    function("floor", &[Type::Float8], Type::Float8, |args| rounded(args, RoundingMode::Floor)),
    function("trunc", &[Type::Numeric], Type::Numeric, |args| rounded(args, RoundingMode::Down)),
    function("trunc", &[Type::Float8], Type::Float8, |args| rounded(args, RoundingMode::Down)),
    function("round", &[Type::Numeric], Type::Numeric, |args| rounded(args, RoundingMode::HalfUp)),
    function("round", &[Type::Float8], Type::Float8, |args| rounded(args, RoundingMode::HalfEven)),
    function("round", &[Type::Numeric, Type::Int4], Type::Numeric, round_to),
    function("mod", &[Type::Int4, Type::Int4], Type::Int4, |args| modulo(args, Type::Int4)),
    function("mod", &[Type::Int8, Type::Int8], Type::Int8, |args| modulo(args, Type::Int8)),
    function("mod", &[Type::Numeric, Type::Numeric], Type::Numeric, |args| modulo(args, Type::Numeric)),
];

fn abs(args: &[Value], r#type: Type) -> Result<Value, SqlError> {
    Ok(match args {
        [value @ Value::Int(number)] if *number < 0 => arithmetic::negate(value, r#type)?,
        [Value::Numeric(number)] => Value::Numeric(number.abs()),
        [Value::Float4(number)] => Value::Float4(number.abs()),
        [Value::Float8(number)] => Value::Float8(number.abs()),
        [other, ..] => other.clone(),
        [] => Value::Null,
    })
}

fn rounded(args: &[Value], mode: RoundingMode) -> Result<Value, SqlError> {
    Ok(match args {
        [Value::Numeric(number)] => Value::Numeric(number.with_scale_round(0, mode)),
        [Value::Float8(number)] => Value::Float8(match mode {
            RoundingMode::Ceiling => number.ceil(),
            RoundingMode::Floor => number.floor(),
            RoundingMode::Down => number.trunc(),
            _ => number.round_ties_even(),
        }),
        _ => Value::Null,
    })
}

fn round_to(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Numeric(number), Value::Int(digits)] = args else { return Ok(Value::Null) };
    let rounded: BigDecimal = numeric::round(number, (*digits).clamp(-1000, 1000));
    Ok(Value::Numeric(if *digits < 0 { rounded.with_scale(0) } else { rounded }))
}

fn modulo(args: &[Value], r#type: Type) -> Result<Value, SqlError> {
    let [a, b] = args else { return Ok(Value::Null) };
    arithmetic::apply(arithmetic::Operation::Modulo, r#type, a, b)
}
