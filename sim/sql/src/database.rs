//! The calls of a server.

use std::sync::Arc;

use crate::api::{Column, Notification, Now, SessionId, Step, TransactionStatus};
use crate::error::SqlError;
use crate::log::Record;
use crate::value::Value;
use crate::value::types::Type;

/// A database in memory: tables, sequences, transactions, locks, and sessions.
#[derive(Debug, Default)]
pub struct Database {}

/// One statement of a text, parsed.
#[derive(Clone, Debug)]
pub struct Parsed {
    inner: Arc<str>,
}

/// A statement with the types of its parameters and columns.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The types of `$1`, `$2`, and so on.
    pub parameters: Vec<Type>,
    /// The columns of the rows that it returns; `None` if it returns no rows (`NoData`).
    pub columns: Option<Vec<Column>>,
    parsed: Option<Parsed>,
}

impl Prepared {
    /// Returns whether the text had no statement: answer `EmptyQueryResponse`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parsed.is_none()
    }
}

#[allow(unused_variables, clippy::unused_self, clippy::needless_pass_by_value)]
impl Database {
    /// Makes an empty database.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a session.
    pub fn connect(&mut self) -> SessionId {
        SessionId(0)
    }

    /// Ends a session: rolls its transaction back and releases its locks.
    pub fn disconnect(&mut self, session: SessionId) {}

    /// Parses the statements of a simple query; an empty text has none.
    ///
    /// # Errors
    ///
    /// 42601 for text that is not SQL.
    pub fn statements(sql: &str) -> Result<Vec<Parsed>, SqlError> {
        Err(SqlError::unknown("SQL"))
    }

    /// Prepares the only statement of a text. Parameters of type `Unknown`, or that are not listed, get the
    /// types that PostgreSQL infers.
    ///
    /// # Errors
    ///
    /// Those of parsing and of names and types. The transaction block, if there is one, is failed then.
    pub fn prepare(&mut self, session: SessionId, sql: &str, types: &[Type]) -> Result<Prepared, SqlError> {
        Err(SqlError::unknown("SQL"))
    }

    /// Prepares a statement that is parsed already.
    ///
    /// # Errors
    ///
    /// As [`Self::prepare`].
    pub fn prepare_parsed(
        &mut self,
        session: SessionId,
        parsed: &Parsed,
        types: &[Type],
    ) -> Result<Prepared, SqlError> {
        Err(SqlError::unknown("SQL"))
    }

    /// Runs a statement. Outside of a transaction block it runs in an implicit transaction, which lasts until
    /// [`Self::sync`]. After a failure the implicit transaction is rolled back already.
    pub fn run(&mut self, session: SessionId, prepared: &Prepared, parameters: &[Value], now: Now) -> Step {
        Step::Failed(SqlError::unknown("SQL"))
    }

    /// Ends the implicit transaction: commits it, or does nothing if there is none. After an error in a message
    /// of the extended protocol call it as well.
    ///
    /// # Errors
    ///
    /// 40001 and others that only a commit finds: the transaction is rolled back.
    pub fn sync(&mut self, session: SessionId) -> Result<(), SqlError> {
        Ok(())
    }

    /// Fails the transaction after an error that the server itself has found, such as a parameter that it can't
    /// read.
    pub fn fail(&mut self, session: SessionId) {}

    /// Returns the state of the transaction block.
    #[must_use]
    pub fn status(&self, session: SessionId) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// Returns the sessions whose wait may be over, in the order in which they began to wait.
    pub fn take_woken(&mut self) -> Vec<SessionId> {
        Vec::new()
    }

    /// Ends a blocked or sleeping statement with an error, as [`Self::run`] would have returned it.
    pub fn cancel(&mut self, session: SessionId, error: SqlError) -> Step {
        Step::Failed(error)
    }

    /// Returns the circle of sessions in which a blocked session waits for itself, beginning with it. Ask after
    /// `deadlock_timeout`, and cancel the session that asks with [`Self::deadlock_error`].
    #[must_use]
    pub fn deadlock(&self, session: SessionId) -> Option<Vec<SessionId>> {
        None
    }

    /// Makes the error of the session that a deadlock ends: 40P01.
    #[must_use]
    pub fn deadlock_error(&self, circle: &[SessionId]) -> SqlError {
        SqlError::new("40P01", "deadlock detected")
    }

    /// Returns the value of a setting as `SHOW` prints it.
    #[must_use]
    pub fn setting(&self, session: SessionId, name: &str) -> Option<String> {
        None
    }

    /// Returns a setting in milliseconds, such as `statement_timeout`; 0 is none.
    #[must_use]
    pub fn setting_millis(&self, session: SessionId, name: &str) -> u64 {
        0
    }

    /// Sets a setting for the session, such as a parameter of the startup message.
    ///
    /// # Errors
    ///
    /// 42704 and 22023 for a name or a value that does not exist.
    pub fn set(&mut self, session: SessionId, name: &str, value: &str) -> Result<(), SqlError> {
        Ok(())
    }

    /// Returns the notifications of committed transactions.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        Vec::new()
    }

    /// Returns the records of the write-ahead log since the last call. A record is lost unless it is written
    /// and synced; a client may be told of its commit only after that, unless `synchronous_commit` is off.
    pub fn take_log(&mut self) -> Vec<Record> {
        Vec::new()
    }

    /// Applies the records of the log, in their order, to a new database.
    ///
    /// # Errors
    ///
    /// XX000 for a record that does not fit to the ones before.
    pub fn replay(&mut self, records: &[Record]) -> Result<(), SqlError> {
        Ok(())
    }
}
