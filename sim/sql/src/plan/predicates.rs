//! Expressions that ask: IS, BETWEEN, IN, LIKE, ANY and ALL.

use sqlparser::ast;
use sqlparser::ast::{BinaryOperator, InTarget};

use super::binder::Binder;
use super::casts::Context;
use super::expr::{Compare, Expr, Op, SubqueryKind, Typed};
use super::expressions::{boolean, not};
use super::operators::comparison;
use crate::error::SqlError;
use crate::storage::table::Modified;
use crate::value::types::Type;

impl Binder<'_> {
    pub(super) fn predicate(&mut self, expr: &ast::Expr) -> Result<Typed, SqlError> {
        use ast::Expr as E;
        match expr {
            E::IsNull(inner) => Ok(boolean(Op::IsNull, vec![self.expr(inner)?.expr])),
            E::IsNotNull(inner) => {
                let is_known = |part| Expr::call(Op::Not, vec![Expr::call(Op::IsNull, vec![part])]);
                Ok(match self.expr(inner)?.expr {
                    // A row is not null if none of its fields is.
                    Expr::Call { op: Op::Row, args } => {
                        boolean(Op::And, args.into_iter().map(is_known).collect())
                    }
                    expr => Typed { expr: is_known(expr), r#type: Type::Bool },
                })
            }
            E::IsTrue(inner) | E::IsNotTrue(inner) => {
                let typed = self.expr(inner)?;
                let inner = self.condition(typed, "IS TRUE")?;
                Ok(not(boolean(Op::Is(true), vec![inner]), matches!(expr, E::IsNotTrue(_))))
            }
            E::IsFalse(inner) | E::IsNotFalse(inner) => {
                let typed = self.expr(inner)?;
                let inner = self.condition(typed, "IS FALSE")?;
                Ok(not(boolean(Op::Is(false), vec![inner]), matches!(expr, E::IsNotFalse(_))))
            }
            E::IsUnknown(inner) => Ok(boolean(Op::IsNull, vec![self.expr(inner)?.expr])),
            E::IsNotUnknown(inner) => Ok(not(boolean(Op::IsNull, vec![self.expr(inner)?.expr]), true)),
            E::IsDistinctFrom(a, b) | E::IsNotDistinctFrom(a, b) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                let (a, b) = self.comparable(a, b, "=")?;
                Ok(not(boolean(Op::IsDistinct, vec![a, b]), matches!(expr, E::IsNotDistinctFrom(..))))
            }
            E::Between { expr, negated, low, high } => {
                let (value, low) = (self.expr(expr)?, self.expr(low)?);
                let from = self.binary(&BinaryOperator::GtEq, value.clone(), low)?;
                let high = self.expr(high)?;
                let to = self.binary(&BinaryOperator::LtEq, value, high)?;
                Ok(not(boolean(Op::And, vec![from.expr, to.expr]), *negated))
            }
            E::In { expr, target, negated, .. } => self.is_in(expr, target, *negated),
            E::Like { negated, any: false, expr, pattern, escape_char: None } => {
                self.like(expr, pattern, false).map(|like| not(like, *negated))
            }
            E::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                self.like(expr, pattern, true).map(|like| not(like, *negated))
            }
            E::AnyOp { left, compare_op, right, .. } => self.elements(left, compare_op, right, false),
            E::AllOp { left, compare_op, right } => self.elements(left, compare_op, right, true),
            E::Array(array) => {
                let items = array.elem.iter().map(|item| self.expr(item)).collect::<Result<Vec<_>, _>>()?;
                let (items, element) = self.unify(items, "ARRAY")?;
                let r#type = element.array().ok_or_else(|| SqlError::unknown("arrays of this type"))?;
                Ok(Typed { expr: Expr::call(Op::MakeArray, items), r#type })
            }
            _ => self.special_call(expr),
        }
    }

    fn like(
        &mut self,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        is_insensitive: bool,
    ) -> Result<Typed, SqlError> {
        let (text, pattern) = (self.expr(expr)?, self.expr(pattern)?);
        let types = (text.r#type, pattern.r#type);
        let op = if is_insensitive { "~~*" } else { "~~" };
        let wrong = || super::operators::no_operator(op, types.0, types.1);
        let to = Modified::plain(Type::Text);
        let text = self.coerce(text, to, Context::Implicit)?.ok_or_else(wrong)?;
        let pattern = self.coerce(pattern, to, Context::Implicit)?.ok_or_else(wrong)?;
        Ok(boolean(Op::Like { is_insensitive }, vec![text, pattern]))
    }

    fn is_in(&mut self, expr: &ast::Expr, target: &InTarget, negated: bool) -> Result<Typed, SqlError> {
        let equal = SubqueryKind::Rows { compare: Compare::Eq, all: false };
        match target {
            InTarget::List(items) => {
                let mut equal = Vec::new();
                if let ast::Expr::Tuple(fields) = expr {
                    for item in items {
                        let ast::Expr::Tuple(values) = item else {
                            return Err(SqlError::unknown("IN of a row and a value"));
                        };
                        equal.push(self.rows(fields, &BinaryOperator::Eq, values)?.expr);
                    }
                    return Ok(not(boolean(Op::Or, equal), negated));
                }
                for item in items {
                    let (value, item) = (self.expr(expr)?, self.expr(item)?);
                    let (a, b) = self.comparable(value, item, "=")?;
                    equal.push(Expr::call(Op::Compare(Compare::Eq), vec![a, b]));
                }
                Ok(not(boolean(Op::Or, equal), negated))
            }
            InTarget::Subquery(query) => {
                let left = match expr {
                    ast::Expr::Tuple(fields) => {
                        fields.iter().map(|field| self.expr(field)).collect::<Result<_, _>>()?
                    }
                    _ => vec![self.expr(expr)?],
                };
                Ok(not(self.subquery(query, equal, Some(left))?, negated))
            }
            _ => Err(SqlError::unknown("this form of IN")),
        }
    }

    /// Resolves `= ANY (…)` and `= ALL (…)`.
    fn elements(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> Result<Typed, SqlError> {
        let compare = comparison(op).ok_or_else(|| SqlError::unknown(format_args!("{op} ANY")))?;
        let left = self.expr(left)?;
        if let ast::Expr::Subquery(query) = right {
            return self.subquery(query, SubqueryKind::Rows { compare, all }, Some(vec![left]));
        }
        let right = self.expr(right)?;
        let element = match right.r#type {
            Type::Array(element) => *element,
            Type::Unknown => left.r#type,
            _ => {
                let text = "op ANY/ALL (array) requires array on right side";
                return Err(SqlError::new("42809", text));
            }
        };
        let wrong = || super::operators::no_operator(&op.to_string(), left.r#type, element);
        let common = super::casts::common_type(&[left.r#type, element], "").map_err(|_| wrong())?;
        let array = common.array().ok_or_else(wrong)?;
        let right = self.coerce(right, Modified::plain(array), Context::Implicit)?.ok_or_else(wrong)?;
        let left =
            self.coerce(left.clone(), Modified::plain(common), Context::Implicit)?.ok_or_else(wrong)?;
        Ok(boolean(Op::Elements { compare, all }, vec![left, right]))
    }
}
