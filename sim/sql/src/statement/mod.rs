//! Statements: parsing, and those beside queries and changes of rows.

pub(crate) mod parse;
pub(crate) mod utility;
