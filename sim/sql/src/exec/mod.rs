//! Running statements.

mod aggregate;
mod constraints;
mod eval;
mod functions;
mod group;
mod insert;
mod like;
mod modify;
pub(crate) mod run;
mod scan;
mod select;
mod sets;
