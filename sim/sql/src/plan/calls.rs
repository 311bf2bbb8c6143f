//! Calls of functions and aggregates.

use sqlparser::ast;
use sqlparser::ast::{FunctionArg, FunctionArgExpr, FunctionArguments, TrimWhereField};

use super::binder::{Binder, name_parts, span_of};
use super::casts::{Context, context_of};
use super::expr::{Compare, Expr, Op, SessionFunction, SubqueryKind, Typed};
use crate::error::SqlError;
use crate::functions::builtin::Builtin;
use crate::functions::named;
use crate::storage::table::Modified;
use crate::value::Value;
use crate::value::types::Type;

/// Marks an argument of any type.
const ANY: Type = Type::Void;

/// Functions that need the session: name, arguments, result.
const SESSION: &[(&str, &[Type], Type, SessionFunction)] = &[
    ("now", &[], Type::Timestamptz, SessionFunction::Now),
    ("current_timestamp", &[], Type::Timestamptz, SessionFunction::Now),
    ("transaction_timestamp", &[], Type::Timestamptz, SessionFunction::Now),
    ("statement_timestamp", &[], Type::Timestamptz, SessionFunction::StatementTimestamp),
    ("clock_timestamp", &[], Type::Timestamptz, SessionFunction::ClockTimestamp),
    ("localtimestamp", &[], Type::Timestamp, SessionFunction::LocalTimestamp),
    ("current_date", &[], Type::Date, SessionFunction::CurrentDate),
    ("nextval", &[Type::Regclass], Type::Int8, SessionFunction::NextVal),
    ("currval", &[Type::Regclass], Type::Int8, SessionFunction::CurrVal),
    ("lastval", &[], Type::Int8, SessionFunction::LastVal),
    ("setval", &[Type::Regclass, Type::Int8], Type::Int8, SessionFunction::SetVal),
    ("setval", &[Type::Regclass, Type::Int8, Type::Bool], Type::Int8, SessionFunction::SetVal),
    ("pg_backend_pid", &[], Type::Int4, SessionFunction::BackendPid),
    ("current_setting", &[Type::Text], Type::Text, SessionFunction::CurrentSetting),
    ("current_setting", &[Type::Text, Type::Bool], Type::Text, SessionFunction::CurrentSetting),
    ("set_config", &[Type::Text, Type::Text, Type::Bool], Type::Text, SessionFunction::SetConfig),
    ("txid_current", &[], Type::Int8, SessionFunction::TransactionNumber),
    ("pg_sleep", &[Type::Float8], Type::Void, SessionFunction::Sleep),
    ("pg_notify", &[Type::Text, Type::Text], Type::Void, SessionFunction::Notify),
    ("current_user", &[], Type::Name, SessionFunction::CurrentUser),
    ("session_user", &[], Type::Name, SessionFunction::CurrentUser),
    ("user", &[], Type::Name, SessionFunction::CurrentUser),
    ("current_database", &[], Type::Name, SessionFunction::CurrentDatabase),
    ("current_schema", &[], Type::Name, SessionFunction::CurrentSchema),
    ("to_regclass", &[Type::Text], Type::Regclass, SessionFunction::ToRegclass),
    ("pg_advisory_unlock_all", &[], Type::Void, SessionFunction::AdvisoryUnlockAll),
];

/// Returns the advisory function of a name.
fn advisory(name: &str) -> Option<(SessionFunction, Type)> {
    let (rest, is_try) = match name.strip_prefix("pg_try_advisory") {
        Some(rest) => (rest, true),
        None => (name.strip_prefix("pg_advisory")?, false),
    };
    let unlock = |is_shared| Some((SessionFunction::AdvisoryUnlock { is_shared }, Type::Bool));
    let (is_for_transaction, is_shared) = match rest {
        "_lock" => (false, false),
        "_lock_shared" => (false, true),
        "_xact_lock" => (true, false),
        "_xact_lock_shared" => (true, true),
        "_unlock" if !is_try => return unlock(false),
        "_unlock_shared" if !is_try => return unlock(true),
        _ => return None,
    };
    let r#type = if is_try { Type::Bool } else { Type::Void };
    Some((SessionFunction::AdvisoryLock { is_try, is_shared, is_for_transaction }, r#type))
}

/// Makes the error of arguments that a function does not take: 42883.
pub(super) fn no_function(name: &str, args: &[Type]) -> SqlError {
    let args: Vec<_> = args.iter().map(|arg| arg.name()).collect();
    SqlError::new("42883", format!("function {name}({}) does not exist", args.join(", "))).hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

impl Binder<'_> {
    /// Resolves a call.
    pub(super) fn function(&mut self, call: &ast::Function) -> Result<Typed, SqlError> {
        let at = self.position(span_of(&call.name));
        let parts = name_parts(&call.name)?;
        let name = match &parts[..] {
            [name] => name.clone(),
            [schema, name] if schema == "pg_catalog" => name.clone(),
            _ => return Err(SqlError::unknown(format_args!("the function {}", call.name))),
        };
        if call.over.is_some() || !call.within_group.is_empty() || call.null_treatment.is_some() {
            return Err(SqlError::unknown("window functions and ordered sets").at(at));
        }
        let (args, list) = match &call.args {
            FunctionArguments::None => (Vec::new(), None),
            FunctionArguments::List(list) => (list.args.clone(), Some(list)),
            FunctionArguments::Subquery(query) if name == "array" => {
                return self.subquery(query, SubqueryKind::Array, None);
            }
            FunctionArguments::Subquery(_) => {
                return Err(SqlError::unknown("a query as the argument of a function"));
            }
        };
        if let Some(aggregate) = self.aggregate(&name, call, &args, list)? {
            return Ok(aggregate);
        }
        let has_more =
            list.is_some_and(|list| list.duplicate_treatment.is_some() || !list.clauses.is_empty());
        if has_more || call.filter.is_some() {
            let text = format!("DISTINCT, ORDER BY and FILTER of the function {name}");
            return Err(SqlError::unknown(text).at(at));
        }
        let args = args.iter().map(|arg| self.argument(arg)).collect::<Result<Vec<_>, _>>()?;
        self.call(&name, args).map_err(|error| {
            if matches!(error.code.as_str(), "42883" | "0A000") { error.at(at) } else { error }
        })
    }

    pub(super) fn argument(&mut self, arg: &FunctionArg) -> Result<Typed, SqlError> {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.expr(expr),
            other => Err(SqlError::unknown(format_args!("the argument {other}"))),
        }
    }

    /// Resolves a call of a function that is no aggregate.
    pub(super) fn call(&mut self, name: &str, args: Vec<Typed>) -> Result<Typed, SqlError> {
        let types: Vec<_> = args.iter().map(|arg| arg.r#type).collect();
        if let Some(typed) = self.polymorphic(name, &args)? {
            return Ok(typed);
        }
        if let Some((function, r#type)) = advisory(name) {
            let wanted = if args.len() == 2 { Type::Int4 } else { Type::Int8 };
            if args.is_empty() || args.len() > 2 {
                return Err(no_function(name, &types));
            }
            let mut keys = Vec::new();
            for arg in args {
                let key = self.coerce(arg, Modified::plain(wanted), Context::Implicit)?;
                keys.push(key.ok_or_else(|| no_function(name, &types))?);
            }
            return Ok(Typed { expr: Expr::call(Op::Session(function), keys), r#type });
        }
        let session: Vec<_> = SESSION.iter().filter(|(known, ..)| *known == name).collect();
        let by_count = session.iter().find(|(_, wanted, ..)| wanted.len() == args.len());
        if let Some((_, wanted, r#type, function)) = by_count {
            let mut converted = Vec::new();
            for (arg, wanted) in args.into_iter().zip(*wanted) {
                let arg = self.coerce(arg, Modified::plain(*wanted), Context::Implicit)?;
                converted.push(arg.ok_or_else(|| no_function(name, &types))?);
            }
            return Ok(Typed { expr: Expr::call(Op::Session(*function), converted), r#type: *r#type });
        }
        if name == "version" && args.is_empty() {
            let text = "PostgreSQL 15.18 (simulated)".to_owned();
            return Ok(Typed { expr: Expr::Const(Value::Text(text)), r#type: Type::Text });
        }
        if session.is_empty() && named(name).is_empty() {
            let hint = match name {
                "gen_random_uuid" | "random" => "there is no random source: make the value in the client",
                _ => "functions are listed in sim/sql/src/functions and sim/sql/src/plan/calls.rs",
            };
            return Err(SqlError::unknown(format_args!("the function {name}")).hint(hint));
        }
        self.builtin(name, args)?.ok_or_else(|| no_function(name, &types))
    }

    /// Resolves a function of values by the types of its arguments; `None` if none takes them.
    pub(super) fn builtin(&mut self, name: &str, args: Vec<Typed>) -> Result<Option<Typed>, SqlError> {
        let types: Vec<_> = args.iter().map(|arg| arg.r#type).collect();
        let scored = named(name).into_iter().filter_map(|found| Some((score(found, &types)?, found)));
        let Some((_, found)) = scored.max_by_key(|(score, _)| *score) else { return Ok(None) };
        let mut converted = Vec::new();
        for (number, arg) in args.into_iter().enumerate() {
            let wanted = found.args.get(number).or(found.args.last()).copied().unwrap_or(ANY);
            if wanted == ANY {
                converted.push(self.known(arg)?.expr);
                continue;
            }
            let Some(arg) = self.coerce(arg, Modified::plain(wanted), Context::Implicit)? else {
                return Ok(None);
            };
            converted.push(arg);
        }
        Ok(Some(Typed { expr: Expr::call(Op::Builtin(found), converted), r#type: found.result }))
    }

    /// Gives an expression without a type the type text.
    pub(super) fn known(&mut self, typed: Typed) -> Result<Typed, SqlError> {
        if typed.r#type != Type::Unknown {
            return Ok(typed);
        }
        Ok(Typed { expr: self.explicit(typed, Modified::plain(Type::Text))?, r#type: Type::Text })
    }

    /// Resolves functions whose result has the type of their arguments.
    fn polymorphic(&mut self, name: &str, args: &[Typed]) -> Result<Option<Typed>, SqlError> {
        let upper = name.to_uppercase();
        Ok(Some(match (name, args) {
            ("coalesce" | "greatest" | "least", [_, ..]) => {
                let (args, r#type) = self.unify(args.to_vec(), &upper)?;
                let op = match name {
                    "coalesce" => Op::Coalesce,
                    _ => Op::Extreme { greatest: name == "greatest" },
                };
                Typed { expr: Expr::call(op, args), r#type }
            }
            ("nullif", [a, b]) => {
                // The type of the first operand of `=`, which takes integers of all sizes.
                let common = super::casts::common_type(&[a.r#type, b.r#type], "").unwrap_or(a.r#type);
                let r#type = if a.r#type.is_integer() && common.is_integer() { a.r#type } else { common };
                let (a, b) = self.comparable(a.clone(), b.clone(), "=")?;
                Typed { expr: Expr::call(Op::NullIf, vec![a, b]), r#type }
            }
            ("to_jsonb" | "to_json", [_]) => {
                let json = self.jsonb(args)?.remove(0);
                if name == "to_jsonb" {
                    Typed { expr: json, r#type: Type::Jsonb }
                } else {
                    return Err(SqlError::unknown("the function to_json; take to_jsonb"));
                }
            }
            ("jsonb_build_array", _) => {
                Typed { expr: Expr::call(Op::BuildArray, self.jsonb(args)?), r#type: Type::Jsonb }
            }
            ("jsonb_build_object", _) => {
                if args.len() % 2 == 1 {
                    let text = "argument list must have even number of elements";
                    return Err(SqlError::new("22023", text).hint(
                        "The arguments of jsonb_build_object() must consist of alternating keys and values.",
                    ));
                }
                Typed { expr: Expr::call(Op::BuildObject, self.jsonb(args)?), r#type: Type::Jsonb }
            }
            ("array_length", [array, dimension]) if matches!(array.r#type, Type::Array(_)) => {
                let number = Modified::plain(Type::Int4);
                let Some(dimension) = self.coerce(dimension.clone(), number, Context::Implicit)? else {
                    return Ok(None);
                };
                // Arrays have one dimension here.
                let one = Expr::Const(Value::Int(1));
                let is_first = Expr::call(Op::Compare(Compare::Eq), vec![dimension, one]);
                let op = Op::ArrayLength { is_null_if_empty: true };
                let length = Expr::call(op, vec![array.expr.clone()]);
                let expr = Expr::call(Op::Case, vec![is_first, length]);
                Typed { expr, r#type: Type::Int4 }
            }
            ("cardinality", [array]) if matches!(array.r#type, Type::Array(_)) => {
                let op = Op::ArrayLength { is_null_if_empty: false };
                Typed { expr: Expr::call(op, vec![array.expr.clone()]), r#type: Type::Int4 }
            }
            _ => return Ok(None),
        }))
    }

    fn jsonb(&mut self, args: &[Typed]) -> Result<Vec<Expr>, SqlError> {
        args.iter()
            .map(|arg| {
                let arg = self.known(arg.clone())?;
                Ok(Expr::call(Op::ToJsonb(arg.r#type), vec![arg.expr]))
            })
            .collect()
    }

    /// Resolves the calls that have a syntax of their own.
    pub(super) fn special_call(&mut self, expr: &ast::Expr) -> Result<Typed, SqlError> {
        use ast::Expr as E;
        let text = |text: String| Typed { expr: Expr::Const(Value::Text(text)), r#type: Type::Unknown };
        match expr {
            E::Extract { field, expr, .. } => {
                let value = self.expr(expr)?;
                self.call("extract", vec![text(field.to_string().to_lowercase()), value])
            }
            E::Ceil { expr, .. } => {
                let value = self.expr(expr)?;
                self.call("ceil", vec![value])
            }
            E::Floor { expr, .. } => {
                let value = self.expr(expr)?;
                self.call("floor", vec![value])
            }
            E::Position { expr, r#in } => {
                let (part, whole) = (self.expr(expr)?, self.expr(r#in)?);
                self.call("strpos", vec![whole, part])
            }
            E::Substring { expr, substring_from, substring_for, .. } => {
                let mut args = vec![self.expr(expr)?];
                match substring_from {
                    Some(from) => args.push(self.expr(from)?),
                    None => args.push(Typed { expr: Expr::Const(Value::Int(1)), r#type: Type::Int4 }),
                }
                if let Some(length) = substring_for {
                    args.push(self.expr(length)?);
                }
                self.call("substring", args)
            }
            E::Trim { expr, trim_where, trim_what, trim_characters: None } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let mut args = vec![self.expr(expr)?];
                if let Some(what) = trim_what {
                    args.push(self.expr(what)?);
                }
                self.call(name, args)
            }
            E::AtTimeZone { timestamp, time_zone } => {
                let (time, zone) = (self.expr(timestamp)?, self.expr(time_zone)?);
                self.call("timezone", vec![zone, time])
            }
            E::CompoundFieldAccess { root, access_chain } => self.element(root, access_chain),
            other => Err(SqlError::unknown(format_args!("the expression {other}"))),
        }
    }

    fn element(&mut self, root: &ast::Expr, chain: &[ast::AccessExpr]) -> Result<Typed, SqlError> {
        let array = self.expr(root)?;
        let [ast::AccessExpr::Subscript(ast::Subscript::Index { index })] = chain else {
            return Err(SqlError::unknown("this access to a part of a value"));
        };
        let Type::Array(element) = array.r#type else {
            let text = format!(
                "cannot subscript type {} because it does not support subscripting",
                array.r#type.name()
            );
            return Err(SqlError::new("42804", text));
        };
        let index = self.expr(index)?;
        let index = self.explicit(index, Modified::plain(Type::Int4))?;
        Ok(Typed { expr: Expr::call(Op::Element, vec![array.expr, index]), r#type: *element })
    }
}

/// Returns how well a function takes arguments of these types; `None` if it does not.
fn score(function: &Builtin, types: &[Type]) -> Option<usize> {
    let fits = if function.is_variadic {
        types.len() + 1 >= function.args.len()
    } else {
        types.len() == function.args.len()
    };
    if !fits {
        return None;
    }
    types.iter().enumerate().try_fold(0, |sum, (number, r#type)| {
        let wanted = function.args.get(number).or(function.args.last()).copied()?;
        let score = match (*r#type, wanted) {
            (_, ANY) => 1,
            (from, to) if from == to => 4,
            (Type::Unknown, Type::Text) => 3,
            (Type::Unknown, _) => 1,
            (from, to) if context_of(from, to) == Some(Context::Implicit) => 2,
            _ => return None,
        };
        Some(sum + score)
    })
}
