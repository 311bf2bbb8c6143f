//! Expressions.

use sqlparser::ast;
use sqlparser::ast::{BinaryOperator, InTarget, UnaryOperator};

use super::binder::Binder;
use super::casts::Context;
use super::expr::{Compare, Expr, Op, Subquery, SubqueryKind, Typed};
use super::literals::type_of;
use super::operators::comparison;
use crate::error::SqlError;
use crate::storage::table::Modified;
use crate::value::Value;
use crate::value::types::Type;

fn boolean(op: Op, args: Vec<Expr>) -> Typed {
    Typed { expr: Expr::call(op, args), r#type: Type::Bool }
}

fn not(typed: Typed, is_negated: bool) -> Typed {
    if is_negated { boolean(Op::Not, vec![typed.expr]) } else { typed }
}

impl Binder<'_> {
    /// Resolves an expression.
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Result<Typed, SqlError> {
        use ast::Expr as E;
        match expr {
            E::Identifier(name) => self.column(None, name),
            E::CompoundIdentifier(parts) => match &parts[..] {
                [source, name] => self.column(Some(source), name),
                [_, source, name] => self.column(Some(source), name),
                _ => Err(SqlError::unknown(format_args!("the name {expr}"))),
            },
            E::Value(value) => {
                let at = self.position(value.span);
                if let ast::Value::SingleQuotedString(text) = &value.value {
                    self.literals.push((text.clone(), at));
                }
                self.literal(&value.value).map_err(|error| error.at(at))
            }
            E::Nested(inner) => self.expr(inner),
            E::Collate { expr, collation } if is_by_bytes(collation) => self.expr(expr),
            E::UnaryOp { op, expr } => self.unary(*op, expr),
            E::BinaryOp { left, op, right } => self.binary_expr(left, op, right),
            E::Cast { expr, data_type, .. } => {
                let (typed, to) = (self.expr(expr)?, type_of(data_type)?);
                let expr = self.explicit(typed, to)?;
                Ok(Typed { expr, r#type: to.r#type })
            }
            E::TypedString(string) => {
                let (typed, to) = (self.literal(&string.value.value)?, type_of(&string.data_type)?);
                let expr = self.explicit(typed, to)?;
                Ok(Typed { expr, r#type: to.r#type })
            }
            E::Interval(interval) => self.interval(interval),
            E::Exists { subquery, negated } => {
                let found = self.subquery(subquery, SubqueryKind::Exists, None)?;
                Ok(not(found, *negated))
            }
            E::Subquery(query) => self.subquery(query, SubqueryKind::Scalar, None),
            E::Function(function) => self.function(function),
            E::Tuple(fields) => {
                let fields = fields.iter().map(|field| Ok(self.expr(field)?.expr));
                let fields = fields.collect::<Result<Vec<_>, SqlError>>()?;
                Ok(Typed { expr: Expr::call(Op::Row, fields), r#type: Type::Record })
            }
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            _ => self.predicate(expr),
        }
    }

    fn unary(&mut self, op: UnaryOperator, expr: &ast::Expr) -> Result<Typed, SqlError> {
        let typed = self.expr(expr)?;
        match op {
            UnaryOperator::Not => {
                let condition = self.condition(typed, "NOT")?;
                Ok(boolean(Op::Not, vec![condition]))
            }
            UnaryOperator::Plus => Ok(typed),
            UnaryOperator::Minus => {
                let r#type = if typed.r#type == Type::Unknown { Type::Float8 } else { typed.r#type };
                if !r#type.is_number() && r#type != Type::Interval {
                    return Err(SqlError::new(
                        "42883",
                        format!("operator does not exist: - {}", r#type.name()),
                    )
                    .hint(
                        "No operator matches the given name and argument type. You might need to add an \
                             explicit type cast.",
                    ));
                }
                let arg = self.explicit(typed, Modified::plain(r#type))?;
                Ok(Typed { expr: Expr::call(Op::Negate(r#type), vec![arg]), r#type })
            }
            other => Err(SqlError::unknown(format_args!("the operator {other}"))),
        }
    }

    fn binary_expr(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Typed, SqlError> {
        if let (ast::Expr::Tuple(a), ast::Expr::Tuple(b)) = (left, right) {
            return self.rows(a, op, b);
        }
        let at = self.place_of_operator(op, right);
        let (a, b) = (self.expr(left)?, self.expr(right)?);
        self.binary(op, a, b).map_err(|error| {
            if matches!(error.code.as_str(), "42883" | "42725") { error.at(at) } else { error }
        })
    }

    /// Returns the place of the operator before an expression; 0 if it is not to be seen.
    fn place_of_operator(&self, op: &BinaryOperator, right: &ast::Expr) -> usize {
        let start = self.position(sqlparser::ast::Spanned::span(right));
        self.before(start, &op.to_string())
    }

    /// Compares two rows: `(a, b) < (1, 2)`.
    fn rows(
        &mut self,
        left: &[ast::Expr],
        op: &BinaryOperator,
        right: &[ast::Expr],
    ) -> Result<Typed, SqlError> {
        let compare = comparison(op).ok_or_else(|| SqlError::unknown(format_args!("{op} of rows")))?;
        if left.len() != right.len() {
            return Err(SqlError::syntax("unequal number of entries in row expressions"));
        }
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for (left, right) in left.iter().zip(right) {
            let (left, right) = (self.expr(left)?, self.expr(right)?);
            let (left, right) = self.comparable(left, right, &op.to_string())?;
            a.push(left);
            b.push(right);
        }
        if compare == Compare::Eq {
            let equal = a.into_iter().zip(b).map(|(a, b)| Expr::call(Op::Compare(Compare::Eq), vec![a, b]));
            return Ok(boolean(Op::And, equal.collect()));
        }
        Ok(boolean(Op::Compare(compare), vec![Expr::call(Op::Row, a), Expr::call(Op::Row, b)]))
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<Typed, SqlError> {
        let typed = self.expr(&interval.value)?;
        let Expr::Const(Value::Text(mut text)) = typed.expr else {
            return Err(SqlError::unknown("intervals of expressions; write interval '1 ms' * n"));
        };
        if interval.last_field.is_some() || interval.leading_precision.is_some() {
            return Err(SqlError::unknown("ranges of fields of an interval"));
        }
        if let Some(unit) = &interval.leading_field {
            text = format!("{text} {}", unit.to_string().to_lowercase());
        }
        let value = Value::parse(Type::Interval, &text)?;
        Ok(Typed { expr: Expr::Const(value), r#type: Type::Interval })
    }

    /// Resolves a query within an expression, compared with `left` if there is one.
    pub(super) fn subquery(
        &mut self,
        query: &ast::Query,
        kind: SubqueryKind,
        left: Option<Vec<Typed>>,
    ) -> Result<Typed, SqlError> {
        let (mut query, level) = self.nested_query(query)?;
        let width = query.columns.len();
        let wanted = left.as_ref().map_or(1, Vec::len);
        if kind != SubqueryKind::Exists && width != wanted {
            let text = match kind {
                SubqueryKind::Rows { .. } if width > wanted => "subquery has too many columns",
                SubqueryKind::Rows { .. } => "subquery has too few columns",
                _ => "subquery must return only one column",
            };
            return Err(SqlError::syntax(text));
        }
        let first = query.columns.first().map_or(Type::Text, |column| column.r#type);
        let mut compared = Vec::new();
        for (number, typed) in left.into_iter().flatten().enumerate() {
            let r#type = query.columns.get(number).map_or(Type::Text, |column| column.r#type);
            let right = Typed { expr: Expr::Column { depth: 0, index: number }, r#type };
            let (left, right) = self.comparable(typed, right, "=")?;
            if right != (Expr::Column { depth: 0, index: number }) {
                self.convert_output(&mut query, number, &right)?;
            }
            compared.push(left);
        }
        self.subqueries += 1;
        let subquery = Subquery {
            id: self.subqueries,
            kind,
            query: std::sync::Arc::new(query),
            is_correlated: level.is_correlated,
            left: compared,
        };
        let r#type = match kind {
            SubqueryKind::Scalar => first,
            SubqueryKind::Array => first.array().ok_or_else(|| SqlError::unknown("arrays of this type"))?,
            SubqueryKind::Exists | SubqueryKind::Rows { .. } => Type::Bool,
        };
        Ok(Typed { expr: Expr::Subquery(Box::new(subquery)), r#type })
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Typed, SqlError> {
        let (mut whens, mut results) = (Vec::new(), Vec::new());
        for case in conditions {
            let when = self.expr(&case.condition)?;
            whens.push(match operand {
                Some(operand) => {
                    let operand = self.expr(operand)?;
                    let (a, b) = self.comparable(operand, when, "=")?;
                    Expr::call(Op::Compare(Compare::Eq), vec![a, b])
                }
                None => self.condition(when, "CASE/WHEN")?,
            });
            results.push(self.expr(&case.result)?);
        }
        results.push(match otherwise {
            Some(otherwise) => self.expr(otherwise)?,
            None => Typed { expr: Expr::Const(Value::Null), r#type: Type::Unknown },
        });
        let (mut results, r#type) = self.unify(results, "CASE")?;
        let last = results.pop();
        let pairs = whens.into_iter().zip(results).flat_map(|(when, then)| [when, then]);
        let args = pairs.chain(last).collect();
        Ok(Typed { expr: Expr::call(Op::Case, args), r#type })
    }

    fn predicate(&mut self, expr: &ast::Expr) -> Result<Typed, SqlError> {
        use ast::Expr as E;
        match expr {
            E::IsNull(inner) => Ok(boolean(Op::IsNull, vec![self.expr(inner)?.expr])),
            E::IsNotNull(inner) => Ok(not(boolean(Op::IsNull, vec![self.expr(inner)?.expr]), true)),
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

/// Returns whether a collation orders texts by their bytes, as this database does.
fn is_by_bytes(collation: &ast::ObjectName) -> bool {
    let name = collation.to_string().replace('"', "");
    ["C", "POSIX", "default", "pg_catalog.C", "pg_catalog.default"].contains(&name.as_str())
}
