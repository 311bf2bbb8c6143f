//! A database in memory that runs SQL as PostgreSQL 15 does: no network, no clock, no random source, no
//! threads. Texts are ordered by their bytes (collation `C`), and the time zone is UTC.
//!
//! A server around it speaks the protocol, tells the time ([`Now`]), waits for locks and keeps the
//! write-ahead log on a disk. A statement goes through these calls:
//!
//! - [`Database::statements`] parses the text of a simple query; [`Database::prepare`] parses one statement
//!   and finds the types of its parameters and columns.
//! - [`Database::run`] runs it. A statement that must wait returns [`Step::Blocked`]: its locks and rows
//!   stay, and the same call again goes on. [`Database::take_woken`] says when. Run the sessions in its
//!   order, before any other statement, so that nobody overtakes a waiter.
//! - [`Database::sync`] ends the implicit transaction: at the end of a simple query, and at `Sync`. A
//!   statement is committed only then, so send `CommandComplete` of the last statement of a simple query
//!   after it.
//!
//! What it does not know it refuses with SQLSTATE 0A000 and a text that names it; it never guesses.

// The layers, from the lowest up: `value` (values and their texts), `storage` (row versions, locks,
// transactions), `functions` (of values), `syntax::parse` and `plan` (names and types resolved), `exec`
// (queries and changes of rows), `statement` (changes of the catalog), `database` (the calls of a server).
// `tests/recorded` has scripts with the answers of a live PostgreSQL, which `tests/record` writes.

mod api;
mod database;
mod error;
mod exec;
mod functions;
mod log;
mod plan;
mod session;
mod settings;
mod statement;
mod storage;
mod syntax;
mod value;

pub use api::{Column, Notification, Now, SessionId, Step, TransactionStatus};
pub use database::{Database, Prepared};
pub use error::{Fields, SqlError};
pub use log::Record;
pub use syntax::parse::Parsed;
pub use value::types::Type;
pub use value::{Interval, Json, Value};
