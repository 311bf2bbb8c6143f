//! Statements with names and types resolved.

mod aggregates;
pub(crate) mod binder;
mod calls;
pub(crate) mod casts;
mod conflict;
pub(crate) mod expr;
mod expressions;
mod from;
pub(crate) mod literals;
mod modify;
mod names;
mod operators;
mod predicates;
mod query;
mod select;
mod statement;
mod words;

pub(crate) use self::statement::plan;
