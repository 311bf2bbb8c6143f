//! Operators by the types of their operands.

use sqlparser::ast::BinaryOperator;

use super::binder::Binder;
use super::casts::{Context, common_type, context_of};
use super::expr::{Compare, Expr, Op, Typed};
use crate::error::SqlError;
use crate::functions::arithmetic::Operation;
use crate::storage::table::Modified;
use crate::value::types::Type;

/// Returns the comparison of an operator.
pub(super) fn comparison(op: &BinaryOperator) -> Option<Compare> {
    Some(match op {
        BinaryOperator::Eq => Compare::Eq,
        BinaryOperator::NotEq => Compare::Ne,
        BinaryOperator::Lt => Compare::Lt,
        BinaryOperator::LtEq => Compare::Le,
        BinaryOperator::Gt => Compare::Gt,
        BinaryOperator::GtEq => Compare::Ge,
        _ => return None,
    })
}

fn arithmetic(op: &BinaryOperator) -> Option<Operation> {
    Some(match op {
        BinaryOperator::Plus => Operation::Add,
        BinaryOperator::Minus => Operation::Subtract,
        BinaryOperator::Multiply => Operation::Multiply,
        BinaryOperator::Divide => Operation::Divide,
        BinaryOperator::Modulo => Operation::Modulo,
        _ => return None,
    })
}

/// Makes the error of operands that an operator does not take: 42883.
pub(super) fn no_operator(op: &str, left: Type, right: Type) -> SqlError {
    let text = format!("operator does not exist: {} {op} {}", left.name(), right.name());
    SqlError::new("42883", text).hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}

impl Binder<'_> {
    /// Resolves a binary operator.
    pub(super) fn binary(
        &mut self,
        op: &BinaryOperator,
        left: Typed,
        right: Typed,
    ) -> Result<Typed, SqlError> {
        if let Some(compare) = comparison(op) {
            let (left, right) = self.comparable(left, right, &op.to_string())?;
            let expr = Expr::call(Op::Compare(compare), vec![left, right]);
            return Ok(Typed { expr, r#type: Type::Bool });
        }
        if let Some(operation) = arithmetic(op) {
            return self.arithmetic(operation, op, left, right);
        }
        match op {
            BinaryOperator::StringConcat => self.concat(left, right),
            BinaryOperator::Arrow
            | BinaryOperator::LongArrow
            | BinaryOperator::HashArrow
            | BinaryOperator::HashLongArrow
            | BinaryOperator::HashMinus
            | BinaryOperator::AtArrow
            | BinaryOperator::ArrowAt
            | BinaryOperator::Question
            | BinaryOperator::QuestionPipe
            | BinaryOperator::QuestionAnd => {
                let types = (left.r#type, right.r#type);
                let found = self.builtin(&format!("op {op}"), vec![left, right])?;
                found.ok_or_else(|| no_operator(&op.to_string(), types.0, types.1))
            }
            _ => Err(SqlError::unknown(format_args!("the operator {op}"))),
        }
    }

    /// Converts two operands to a type that compares them.
    pub(super) fn comparable(
        &mut self,
        left: Typed,
        right: Typed,
        op: &str,
    ) -> Result<(Expr, Expr), SqlError> {
        let types = (left.r#type, right.r#type);
        let wrong = || no_operator(op, types.0, types.1);
        let common = common_type(&[types.0, types.1], "").map_err(|_| wrong())?;
        if matches!(common, Type::Json | Type::Void) {
            return Err(wrong());
        }
        let to = Modified::plain(common);
        let left = self.coerce(left, to, Context::Implicit)?.ok_or_else(wrong)?;
        let right = self.coerce(right, to, Context::Implicit)?.ok_or_else(wrong)?;
        Ok((left, right))
    }

    fn arithmetic(
        &mut self,
        operation: Operation,
        op: &BinaryOperator,
        left: Typed,
        right: Typed,
    ) -> Result<Typed, SqlError> {
        let types = (left.r#type, right.r#type);
        let wrong = || no_operator(&op.to_string(), types.0, types.1);
        if types == (Type::Unknown, Type::Unknown) {
            let text = format!("operator is not unique: unknown {op} unknown");
            return Err(SqlError::new("42725", text).hint(
                "Could not choose a best candidate operator. You might need to add explicit type casts.",
            ));
        }
        let (a, b, result) = signature(operation, types.0, types.1).ok_or_else(wrong)?;
        let left = self.coerce(left, Modified::plain(a), Context::Implicit)?.ok_or_else(wrong)?;
        let right = self.coerce(right, Modified::plain(b), Context::Implicit)?.ok_or_else(wrong)?;
        let expr = Expr::call(Op::Arithmetic(operation, result), vec![left, right]);
        Ok(Typed { expr, r#type: result })
    }

    fn concat(&mut self, left: Typed, right: Typed) -> Result<Typed, SqlError> {
        let types = (left.r#type, right.r#type);
        let wrong = || no_operator("||", types.0, types.1);
        let is_either = |r#type: Type| types.0 == r#type || types.1 == r#type;
        if matches!(types.0, Type::Array(_)) || matches!(types.1, Type::Array(_)) {
            return Err(SqlError::unknown("the operator || of arrays"));
        }
        let is_text = |t: Type| t.is_text() || t == Type::Unknown;
        let (name, r#type) = if is_either(Type::Jsonb) && !types.0.is_text() && !types.1.is_text() {
            ("jsonb_concat", Type::Jsonb)
        } else if is_either(Type::Bytea) && !types.0.is_text() && !types.1.is_text() {
            ("byteacat", Type::Bytea)
        } else if is_text(types.0) || is_text(types.1) {
            ("textcat", Type::Text)
        } else {
            return Err(wrong());
        };
        let context = if r#type == Type::Text { Context::Assignment } else { Context::Implicit };
        let left = self.coerce(left, Modified::plain(r#type), context)?.ok_or_else(wrong)?;
        let right = self.coerce(right, Modified::plain(r#type), context)?.ok_or_else(wrong)?;
        let args = [left, right].into_iter().map(|expr| Typed { expr, r#type }).collect();
        self.builtin(name, args)?.ok_or_else(wrong)
    }
}

/// Returns the types of the operands and of the result.
fn signature(op: Operation, left: Type, right: Type) -> Option<(Type, Type, Type)> {
    use Operation::{Add, Divide, Multiply, Subtract};
    use Type::{Date, Float8, Int4, Int8, Interval, Jsonb, Timestamp, Timestamptz, Unknown};
    let is_time = |t: Type| matches!(t, Timestamptz | Timestamp | Date);
    let moved = |t: Type| if t == Date { Timestamp } else { t };
    match (left, right) {
        (Unknown, Unknown) => None,
        (a, b) if (a.is_number() || a == Unknown) && (b.is_number() || b == Unknown) => {
            let common = common_type(&[a, b], "").ok()?;
            Some((common, common, common))
        }
        (a, Interval) if is_time(a) && matches!(op, Add | Subtract) => Some((a, Interval, moved(a))),
        (Interval, b) if is_time(b) && op == Add => Some((Interval, b, moved(b))),
        (Date, b) if b.is_integer() && matches!(op, Add | Subtract) && b != Int8 => Some((Date, Int4, Date)),
        (Date, Date) if op == Subtract => Some((Date, Date, Int4)),
        (a, Unknown) if is_time(a) && op == Add => Some((a, Interval, moved(a))),
        (Unknown, b) if is_time(b) && op == Add => Some((Interval, b, moved(b))),
        (a, b) if op == Subtract && (is_time(a) || is_time(b)) => {
            let common = common_type(&[a, b], "").ok().filter(|common| is_time(*common))?;
            Some((common, common, if common == Date { Int4 } else { Interval }))
        }
        (Interval, Interval | Unknown) | (Unknown, Interval) if matches!(op, Add | Subtract) => {
            Some((Interval, Interval, Interval))
        }
        (Interval, b) if matches!(op, Multiply | Divide) && (b.is_number() || b == Unknown) => {
            Some((Interval, Float8, Interval))
        }
        (a, Interval) if op == Multiply && (a.is_number() || a == Unknown) => {
            Some((Float8, Interval, Interval))
        }
        (Jsonb, Unknown) if op == Subtract => Some((Jsonb, Type::Text, Jsonb)),
        (Jsonb, b) if op == Subtract && b.is_text() => Some((Jsonb, Type::Text, Jsonb)),
        (Jsonb, b) if op == Subtract && context_of(b, Int4) == Some(Context::Implicit) => {
            Some((Jsonb, Int4, Jsonb))
        }
        _ => None,
    }
}
