//! Statements: parsing, and those beside queries and changes of rows.

mod columns;
mod ddl;
pub(crate) mod parse;
mod table;
pub(crate) mod utility;
