//! The values that a server and the database exchange.

use crate::error::SqlError;
use crate::value::Value;
use crate::value::types::Type;

/// A session: one connection of a client. Its number is `pg_backend_pid()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub i32);

/// The wall clock of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds since 1970-01-01 UTC.
    pub unix_micros: i64,
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub r#type: Type,
}

/// The state of a session, as `ReadyForQuery` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// `I`: outside of a transaction block.
    Idle,
    /// `T`: in a transaction block.
    InTransaction,
    /// `E`: in a transaction block that has failed.
    Failed,
}

/// The outcome of running a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It has run to its end.
    Done {
        /// The command tag, such as `INSERT 0 1`.
        tag: String,
        /// The rows, if it returns rows.
        rows: Vec<Vec<Value>>,
        /// Notices and warnings, to be sent before the result.
        notices: Vec<SqlError>,
    },
    /// It waits for locks of other sessions. Run it again when [`Database::take_woken`](crate::Database)
    /// names the session; or cancel it.
    Blocked {
        /// The sessions that hold the locks.
        on: Vec<SessionId>,
    },
    /// `pg_sleep`: run it again at this time.
    Sleeping {
        /// The end of the sleep.
        until: Now,
    },
    /// It has failed. A transaction block is failed as well.
    Failed(SqlError),
}

/// A message of `NOTIFY` to a session that listens, from a transaction that is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The receiver.
    pub to: SessionId,
    /// The sender.
    pub from: SessionId,
    /// The channel.
    pub channel: String,
    /// The text.
    pub payload: String,
}
