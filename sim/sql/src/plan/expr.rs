//! Expressions and queries whose names and types are resolved.

use std::sync::Arc;

pub(crate) use super::words::{Aggregate, Compare, LockSpec, SessionFunction, SetFunction, SubqueryKind};
use crate::api::Column;
use crate::functions::arithmetic::Operation;
use crate::functions::builtin::Builtin;
use crate::storage::table::{Modified, TableId};
use crate::value::Value;
use crate::value::types::Type;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Const(Value),
    /// A parameter, counted from 0.
    Param(usize),
    /// A column of the row of a query, `depth` queries further out.
    Column {
        depth: usize,
        index: usize,
    },
    /// The result of an aggregate of the group.
    Aggregate(usize),
    Call {
        op: Op,
        args: Vec<Expr>,
    },
    Subquery(Box<Subquery>),
}

/// An expression with its type.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) r#type: Type,
}

/// What a call does with its arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    And,
    Or,
    Not,
    IsNull,
    /// Whether it is exactly this truth value.
    Is(bool),
    Compare(Compare),
    IsDistinct,
    Arithmetic(Operation, Type),
    Negate(Type),
    Cast {
        from: Type,
        to: Modified,
        is_explicit: bool,
    },
    /// Condition, result, condition, result, and the rest.
    Case,
    /// A value that is evaluated once, and then as `Case`: a value to compare it with, result, and so on.
    Switch,
    Coalesce,
    NullIf,
    /// The greatest, or the least.
    Extreme {
        greatest: bool,
    },
    Like {
        is_insensitive: bool,
    },
    /// Compares with any or all elements of an array.
    Elements {
        compare: Compare,
        all: bool,
    },
    MakeArray,
    Element,
    ArrayLength {
        is_null_if_empty: bool,
    },
    ToJsonb(Type),
    BuildArray,
    BuildObject,
    Row,
    Builtin(&'static Builtin),
    Session(SessionFunction),
}

/// A query within an expression.
#[derive(Clone, Debug)]
pub(crate) struct Subquery {
    /// Its number in the statement.
    pub(crate) id: usize,
    pub(crate) kind: SubqueryKind,
    pub(crate) query: Arc<Query>,
    /// Whether it needs the row of an outer query: otherwise it runs once.
    pub(crate) is_correlated: bool,
    /// What is compared with its rows.
    pub(crate) left: Vec<Expr>,
}

impl PartialEq for Subquery {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// A query.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) body: Body,
    pub(crate) order: Vec<SortKey>,
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
    pub(crate) columns: Vec<Column>,
}

/// The rows of a query before its order and limit.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
    Union { left: Box<Query>, right: Box<Query>, all: bool },
    Modify(Box<Modify>),
}

/// One key of an order.
#[derive(Clone, Debug)]
pub(crate) struct SortKey {
    /// A column of the output in place of an expression over the input.
    pub(crate) key: SortBy,
    pub(crate) is_descending: bool,
    pub(crate) nulls_first: bool,
}

/// What rows are ordered by.
#[derive(Clone, Debug)]
pub(crate) enum SortBy {
    Output(usize),
    Input(Expr),
}

/// A `SELECT`.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub(crate) from: From,
    pub(crate) group: Option<Group>,
    pub(crate) output: Vec<Expr>,
    pub(crate) distinct: Distinct,
    pub(crate) locks: Vec<LockSpec>,
}

/// Which rows of equal ones stay.
#[derive(Clone, Debug)]
pub(crate) enum Distinct {
    All,
    Rows,
    On(Vec<Expr>),
}

/// `GROUP BY`, aggregates and `HAVING`. The output's row has the aggregates, then the keys.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) keys: Vec<Expr>,
    pub(crate) aggregates: Vec<AggregateCall>,
    pub(crate) having: Option<Expr>,
}

/// A call of an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AggregateCall {
    pub(crate) function: Aggregate,
    pub(crate) args: Vec<Expr>,
    pub(crate) is_distinct: bool,
    pub(crate) filter: Option<Expr>,
    pub(crate) order: Vec<(Expr, bool, bool)>,
}

/// The sources of a query with its conditions. The row of the query is the rows of its sources, one behind
/// the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct From {
    /// In the order of the loops.
    pub(crate) items: Vec<Item>,
    /// The length of the row.
    pub(crate) width: usize,
    pub(crate) conditions: Vec<Condition>,
}

/// A condition of `WHERE` or of an inner join.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) expr: Expr,
    /// The items that it reads, as bits.
    pub(crate) needs: u64,
    /// `column = expression`: the place of the column in the row, the expression, and the items that it
    /// reads.
    pub(crate) equality: Vec<(usize, Expr, u64)>,
    /// Whether it has a subquery, which runs after simple conditions.
    pub(crate) has_subquery: bool,
}

/// One source.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) source: Source,
    /// The place of its first column in the row.
    pub(crate) offset: usize,
    pub(crate) width: usize,
    /// The condition of a left join.
    pub(crate) left_join: Option<Expr>,
    /// Whether it reads the columns of items before it.
    pub(crate) is_lateral: bool,
}

/// Where rows come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Table(TableId),
    Cte(usize),
    Query(Arc<Query>),
    /// A function that returns a set.
    Set(SetFunction, Vec<Expr>),
    /// A function that returns one value.
    Value(Expr),
}

/// `INSERT`, `UPDATE` or `DELETE`.
#[derive(Clone, Debug)]
pub(crate) struct Modify {
    pub(crate) table: TableId,
    pub(crate) action: Action,
    /// The expressions of `RETURNING`, over the row of `from`, or the new row of an insert.
    pub(crate) returning: Option<Vec<Expr>>,
}

/// A change of rows.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Insert {
        source: Box<Query>,
        /// The expression of each column of the table, over the row of the source.
        values: Vec<Expr>,
        on_conflict: Option<OnConflict>,
    },
    /// The target is the last item of `from`; its row comes first.
    Update {
        from: From,
        set: Vec<(usize, Expr)>,
    },
    Delete {
        from: From,
    },
}

/// `ON CONFLICT`.
#[derive(Clone, Debug)]
pub(crate) struct OnConflict {
    /// The unique indexes whose conflicts it handles; all, if there are none.
    pub(crate) arbiters: Option<Vec<usize>>,
    pub(crate) update: Option<DoUpdate>,
}

/// `DO UPDATE`: its expressions are over the existing row, then the excluded one.
#[derive(Clone, Debug)]
pub(crate) struct DoUpdate {
    pub(crate) set: Vec<(usize, Expr)>,
    pub(crate) condition: Option<Expr>,
}

/// A common table expression.
#[derive(Clone, Debug)]
pub(crate) struct Cte {
    pub(crate) query: Arc<Query>,
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) query: Arc<Query>,
    pub(crate) ctes: Vec<Cte>,
    pub(crate) parameters: Vec<Type>,
    /// The tables that it reads, locks and changes.
    pub(crate) tables: Vec<(TableId, crate::storage::lock::Mode)>,
    /// Whether its result has columns.
    pub(crate) has_columns: bool,
}

impl Expr {
    pub(crate) fn call(op: Op, args: Vec<Self>) -> Self {
        Self::Call { op, args }
    }

    /// Replaces expressions from the outside in; where `change` returns one, its parts are left alone.
    pub(crate) fn replace(self, change: &mut impl FnMut(&Self) -> Option<Self>) -> Self {
        if let Some(changed) = change(&self) {
            return changed;
        }
        match self {
            Self::Call { op, args } => {
                Self::Call { op, args: args.into_iter().map(|arg| arg.replace(change)).collect() }
            }
            Self::Subquery(mut subquery) => {
                subquery.left = subquery.left.into_iter().map(|arg| arg.replace(change)).collect();
                Self::Subquery(subquery)
            }
            other => other,
        }
    }

    /// Returns whether it calls a volatile function, outside of subqueries.
    pub(crate) fn is_volatile(&self) -> bool {
        let mut is_volatile = false;
        self.visit(&mut |part| {
            let Self::Call { op: Op::Session(function), .. } = part else { return };
            is_volatile |= function.is_volatile();
        });
        is_volatile
    }

    /// Calls `visit` for the expression and its parts, except those within subqueries.
    pub(crate) fn visit(&self, visit: &mut impl FnMut(&Self)) {
        visit(self);
        match self {
            Self::Call { args, .. } => args.iter().for_each(|arg| arg.visit(visit)),
            Self::Subquery(subquery) => subquery.left.iter().for_each(|arg| arg.visit(visit)),
            _ => {}
        }
    }
}

impl Query {
    /// Returns the expressions that make a column of the output.
    pub(crate) fn outputs(&mut self, number: usize) -> Vec<&mut Expr> {
        match &mut self.body {
            Body::Select(select) => select.output.get_mut(number).into_iter().collect(),
            Body::Values(rows) => rows.iter_mut().filter_map(|row| row.get_mut(number)).collect(),
            Body::Union { left, right, .. } => {
                left.outputs(number).into_iter().chain(right.outputs(number)).collect()
            }
            Body::Modify(modify) => {
                let returning = modify.returning.as_mut();
                returning.and_then(|returning| returning.get_mut(number)).into_iter().collect()
            }
        }
    }
}
