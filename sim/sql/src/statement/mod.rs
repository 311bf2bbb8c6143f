//! Statements that change the catalog.

mod columns;
mod ddl;
mod indexes;
mod table;
