//! Expressions.

use sqlparser::ast;
use sqlparser::ast::{BinaryOperator, UnaryOperator};

use super::binder::Binder;
use super::expr::{Compare, Expr, Op, Subquery, SubqueryKind, Typed};
use super::literals::type_of;
use super::operators::comparison;
use crate::error::SqlError;
use crate::storage::table::Modified;
use crate::value::Value;
use crate::value::types::Type;

pub(super) fn boolean(op: Op, args: Vec<Expr>) -> Typed {
    Typed { expr: Expr::call(op, args), r#type: Type::Bool }
}

pub(super) fn not(typed: Typed, is_negated: bool) -> Typed {
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
        if let BinaryOperator::And | BinaryOperator::Or = op {
            return self.connected(left, op, right);
        }
        let at = self.place_of_operator(op, right);
        let (a, b) = (self.expr(left)?, self.expr(right)?);
        self.binary(op, a, b).map_err(|error| {
            if matches!(error.code.as_str(), "42883" | "42725") { error.at(at) } else { error }
        })
    }

    /// Resolves `a AND b AND c` in a loop: a client may connect thousands.
    fn connected(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Typed, SqlError> {
        let (mut operands, mut rest) = (vec![right], left);
        while let ast::Expr::BinaryOp { left, op: inner, right } = rest
            && inner == op
        {
            operands.push(right);
            rest = left;
        }
        operands.push(rest);
        let (clause, op) = if *op == BinaryOperator::And { ("AND", Op::And) } else { ("OR", Op::Or) };
        let mut args = Vec::with_capacity(operands.len());
        for operand in operands.into_iter().rev() {
            let typed = self.expr(operand)?;
            args.push(self.condition(typed, clause)?);
        }
        Ok(boolean(op, args))
    }

    /// Compares two rows: `(a, b) < (1, 2)`.
    pub(super) fn rows(
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
        let operand = operand.map(|operand| self.expr(operand)).transpose()?;
        let is_volatile = operand.as_ref().is_some_and(|operand| operand.expr.is_volatile());
        let mut switched = None;
        for case in conditions {
            let when = self.expr(&case.condition)?;
            whens.push(match &operand {
                Some(operand) => {
                    let (a, b) = self.comparable(operand.clone(), when, "=")?;
                    if is_volatile {
                        if *switched.get_or_insert(a.clone()) != a {
                            let what = "a volatile operand of CASE that is converted to several types";
                            return Err(SqlError::unknown(what));
                        }
                        b
                    } else {
                        Expr::call(Op::Compare(Compare::Eq), vec![a, b])
                    }
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
        let op = if switched.is_some() { Op::Switch } else { Op::Case };
        let args = switched.into_iter().chain(pairs).chain(last).collect();
        Ok(Typed { expr: Expr::call(op, args), r#type })
    }
}

/// Returns whether a collation orders texts by their bytes, as this database does.
fn is_by_bytes(collation: &ast::ObjectName) -> bool {
    let name = collation.to_string().replace('"', "");
    ["C", "POSIX", "default", "pg_catalog.C", "pg_catalog.default"].contains(&name.as_str())
}
