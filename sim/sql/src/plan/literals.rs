//! Literals, parameters, and the names of types.

use sqlparser::ast;
use sqlparser::ast::DataType;

use super::binder::Binder;
use super::expr::{Expr, Typed};
use crate::error::SqlError;
use crate::storage::table::{Modified, Modifier};
use crate::value::Value;
use crate::value::types::Type;

impl Binder<'_> {
    /// Resolves a literal or a parameter.
    pub(super) fn literal(&mut self, value: &ast::Value) -> Result<Typed, SqlError> {
        let unknown =
            |text: &str| Typed { expr: Expr::Const(Value::Text(text.to_owned())), r#type: Type::Unknown };
        Ok(match value {
            ast::Value::Number(digits, _) => number(digits)?,
            ast::Value::SingleQuotedString(text)
            | ast::Value::EscapedStringLiteral(text)
            | ast::Value::UnicodeStringLiteral(text) => unknown(text),
            ast::Value::DollarQuotedString(text) => unknown(&text.value),
            ast::Value::Boolean(value) => {
                Typed { expr: Expr::Const(Value::Bool(*value)), r#type: Type::Bool }
            }
            ast::Value::Null => Typed { expr: Expr::Const(Value::Null), r#type: Type::Unknown },
            ast::Value::Placeholder(name) => return self.parameter(name),
            other => return Err(SqlError::unknown(format_args!("the literal {other}"))),
        })
    }

    fn parameter(&mut self, name: &str) -> Result<Typed, SqlError> {
        const MOST: usize = 65_535;
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        let number = number.filter(|number| (1..=MOST).contains(number));
        let number = number.ok_or_else(|| SqlError::new("42P02", format!("there is no parameter {name}")))?;
        if self.parameters.len() < number {
            self.parameters.resize(number, Type::Unknown);
        }
        let r#type = self.parameters.get(number - 1).copied().unwrap_or(Type::Unknown);
        Ok(Typed { expr: Expr::Param(number - 1), r#type })
    }
}

fn number(digits: &str) -> Result<Typed, SqlError> {
    let whole: Option<i64> = digits.parse().ok();
    Ok(match whole {
        Some(whole) => {
            let r#type = if i32::try_from(whole).is_ok() { Type::Int4 } else { Type::Int8 };
            Typed { expr: Expr::Const(Value::Int(whole)), r#type }
        }
        None => Typed { expr: Expr::Const(Value::parse(Type::Numeric, digits)?), r#type: Type::Numeric },
    })
}

/// Returns the modifier of `numeric(precision, scale)`.
fn digits(precision: i64, scale: i64) -> Result<Modifier, SqlError> {
    const MOST: i64 = 1000;
    let text = if !(1..=MOST).contains(&precision) {
        format!("NUMERIC precision {precision} must be between 1 and {MOST}")
    } else if !(-MOST..=MOST).contains(&scale) {
        format!("NUMERIC scale {scale} must be between -{MOST} and {MOST}")
    } else {
        return Ok(Modifier::Digits(precision, scale));
    };
    Err(SqlError::new("22023", text))
}

/// Returns the type that a statement names.
pub(crate) fn type_of(data_type: &DataType) -> Result<Modified, SqlError> {
    let text = data_type.to_string().to_lowercase().replace('"', "");
    let (text, array) = match text.strip_suffix("[]") {
        Some(element) => (element.to_owned(), true),
        None => (text, false),
    };
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => {
            let (arguments, more) = rest.split_once(')').unwrap_or((rest, ""));
            (format!("{}{more}", name.trim_end()), Some(arguments.to_owned()))
        }
        None => (text.clone(), None),
    };
    let unknown = || {
        let is_simple = name.chars().all(|c| c.is_alphanumeric() || c == '_') && arguments.is_none();
        if is_simple && matches!(data_type, DataType::Custom(..)) {
            SqlError::new("42704", format!("type \"{name}\" does not exist"))
        } else {
            SqlError::unknown(format_args!("the type {data_type}"))
        }
    };
    let element = Type::from_name(&name).ok_or_else(unknown)?;
    if element == Type::Bpchar {
        return Err(SqlError::unknown("the type character(n); take text"));
    }
    let numbers = arguments.as_deref().unwrap_or_default().split(',');
    let numbers: Vec<i64> = numbers.filter_map(|number| number.trim().parse().ok()).collect();
    let modifier = match (element, &numbers[..]) {
        (_, []) => Modifier::None,
        (Type::Varchar, [length]) => Modifier::Length(usize::try_from(*length).unwrap_or(usize::MAX)),
        (Type::Numeric, [precision]) => digits(*precision, 0)?,
        (Type::Numeric, [precision, scale]) => digits(*precision, *scale)?,
        (Type::Timestamptz | Type::Timestamp, [6]) => Modifier::None,
        _ => return Err(SqlError::unknown(format_args!("the type {data_type}"))),
    };
    let r#type = if array { element.array().ok_or_else(unknown)? } else { element };
    Ok(Modified { r#type, modifier })
}
