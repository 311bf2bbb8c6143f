//! Which conversions happen where, and the common type of several expressions.

use super::binder::Binder;
use super::expr::{Expr, Op, Typed};
use crate::error::SqlError;
use crate::functions::cast::cast;
use crate::storage::table::{Modified, Modifier};
use crate::value::Value;
use crate::value::types::Type;

/// Where a conversion is asked for; each allows more than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Context {
    Implicit,
    Assignment,
    Explicit,
}

impl Modified {
    pub(crate) fn plain(r#type: Type) -> Self {
        Self { r#type, modifier: Modifier::None }
    }
}

/// Returns the least context in which a type is converted to another; `None` if there is no conversion.
pub(super) fn context_of(from: Type, to: Type) -> Option<Context> {
    use Context::{Assignment, Explicit, Implicit};
    use Type::{
        Bool, Date, Float4, Float8, Int4, Int8, Json, Jsonb, Numeric, Oid, Regclass, Timestamp, Timestamptz,
    };
    Some(match (from, to) {
        _ if from == to => Implicit,
        (Type::Unknown, _) => Implicit,
        _ if from.is_number() && to.is_number() => {
            if from.rank() < to.rank() {
                Implicit
            } else {
                Assignment
            }
        }
        _ if from.is_text() && to.is_text() => Implicit,
        (_, Regclass) if from.is_text() => Implicit,
        (Regclass, _) if to.is_text() => Assignment,
        _ if from == Type::Void || from == Type::Record => return None,
        _ if to.is_text() => Assignment,
        _ if from.is_text() => Explicit,
        (Bool, Int4) | (Int4, Bool) => Explicit,
        (Timestamp, Timestamptz) | (Date, Timestamp | Timestamptz) => Implicit,
        (Timestamptz, Timestamp | Date) | (Timestamp, Date) | (Json, Jsonb) | (Jsonb, Json) => Assignment,
        (Type::Int2 | Int4 | Int8, Oid) => Implicit,
        (Oid, Int4 | Int8) => Assignment,
        (Jsonb, Bool | Type::Int2 | Int4 | Int8 | Numeric | Float4 | Float8) => Explicit,
        (Type::Array(from), Type::Array(to)) => context_of(*from, *to)?,
        _ => return None,
    })
}

impl Binder<'_> {
    /// Converts an expression to a type; `None` if the context does not allow it. A literal is read, and a
    /// parameter without a type gets it.
    pub(super) fn coerce(
        &mut self,
        typed: Typed,
        to: Modified,
        context: Context,
    ) -> Result<Option<Expr>, SqlError> {
        let Typed { expr, r#type: from } = typed;
        if from == Type::Unknown {
            return self.coerce_unknown(expr, to, context).map(Some);
        }
        if context_of(from, to.r#type).is_none_or(|least| least > context) {
            return Ok(None);
        }
        let is_wider = from.is_integer() && to.r#type.is_integer() && from.rank() <= to.r#type.rank();
        let same = from == to.r#type || is_wider || (from.is_text() && to.r#type.is_text());
        if same && to.modifier == Modifier::None {
            return Ok(Some(expr));
        }
        let is_explicit = context == Context::Explicit;
        Ok(Some(Expr::call(Op::Cast { from, to, is_explicit }, vec![expr])))
    }

    fn coerce_unknown(&mut self, expr: Expr, to: Modified, context: Context) -> Result<Expr, SqlError> {
        let is_explicit = context == Context::Explicit;
        match expr {
            Expr::Const(Value::Text(text)) => {
                let place = self.literals.iter().find(|(literal, _)| *literal == text);
                let at = place.map_or(0, |(_, at)| *at);
                let value = Value::parse(to.r#type, &text).map_err(|error| error.at(at))?;
                cast(value, to.r#type, to, is_explicit).map(Expr::Const)
            }
            Expr::Param(number) => {
                let known = self.parameters.get(number).copied().unwrap_or(Type::Unknown);
                if known == Type::Unknown {
                    if let Some(parameter) = self.parameters.get_mut(number) {
                        *parameter = to.r#type;
                    }
                } else if known != to.r#type {
                    let typed = Typed { expr: Expr::Param(number), r#type: known };
                    let coerced = self.coerce(typed, to, context)?;
                    return coerced.ok_or_else(|| {
                        let text = format!("inconsistent types deduced for parameter ${}", number + 1);
                        let detail = format!("{} versus {}", known.name(), to.r#type.name());
                        SqlError::new("42P08", text).detail(detail)
                    });
                }
                if to.modifier == Modifier::None {
                    return Ok(Expr::Param(number));
                }
                let op = Op::Cast { from: to.r#type, to, is_explicit };
                Ok(Expr::call(op, vec![Expr::Param(number)]))
            }
            Expr::Const(Value::Null) => Ok(Expr::Const(Value::Null)),
            other => {
                let op = Op::Cast { from: Type::Text, to, is_explicit };
                Ok(if to.r#type.is_text() { other } else { Expr::call(op, vec![other]) })
            }
        }
    }

    /// Converts an expression as a whole: 42846 if there is no such cast.
    pub(super) fn explicit(&mut self, typed: Typed, to: Modified) -> Result<Expr, SqlError> {
        let from = typed.r#type;
        self.coerce(typed, to, Context::Explicit)?.ok_or_else(|| {
            let text = format!("cannot cast type {} to {}", from.name(), to.r#type.name());
            SqlError::new("42846", text)
        })
    }

    /// Converts an expression that must be a boolean.
    pub(super) fn condition(&mut self, typed: Typed, clause: &str) -> Result<Expr, SqlError> {
        let from = typed.r#type;
        self.coerce(typed, Modified::plain(Type::Bool), Context::Implicit)?.ok_or_else(|| {
            let text = format!("argument of {clause} must be type boolean, not type {}", from.name());
            SqlError::new("42804", text)
        })
    }

    /// Converts an expression to the type of a column.
    pub(super) fn assign(&mut self, typed: Typed, column: &str, to: Modified) -> Result<Expr, SqlError> {
        let from = typed.r#type;
        self.coerce(typed, to, Context::Assignment)?.ok_or_else(|| {
            let (to, from) = (to.r#type.name(), from.name());
            let text = format!("column \"{column}\" is of type {to} but expression is of type {from}");
            SqlError::new("42804", text).hint("You will need to rewrite or cast the expression.")
        })
    }

    /// Converts expressions to their common type.
    pub(super) fn unify(&mut self, all: Vec<Typed>, clause: &str) -> Result<(Vec<Expr>, Type), SqlError> {
        let types: Vec<_> = all.iter().map(|typed| typed.r#type).collect();
        let common = common_type(&types, clause)?;
        let mut unified = Vec::new();
        for typed in all {
            let from = typed.r#type;
            let expr = self.coerce(typed, Modified::plain(common), Context::Implicit)?;
            unified.push(expr.ok_or_else(|| no_match(clause, from, common))?);
        }
        Ok((unified, common))
    }
}

fn no_match(clause: &str, a: Type, b: Type) -> SqlError {
    SqlError::new("42804", format!("{clause} types {} and {} cannot be matched", a.name(), b.name()))
}

/// Returns the type of `CASE`, `UNION` and the like: text, if nothing has a type.
pub(super) fn common_type(types: &[Type], clause: &str) -> Result<Type, SqlError> {
    let mut common = Type::Unknown;
    for r#type in types.iter().copied().filter(|r#type| *r#type != Type::Unknown) {
        let allows = |from, to| context_of(from, to) == Some(Context::Implicit);
        if common == Type::Unknown || (allows(common, r#type) && !allows(r#type, common)) {
            common = r#type;
        } else if !allows(r#type, common) {
            return Err(no_match(clause, common, r#type));
        }
    }
    Ok(if common == Type::Unknown { Type::Text } else { common })
}
