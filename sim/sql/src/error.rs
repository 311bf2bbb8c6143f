//! Errors in PostgreSQL's words, with its codes.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// An error or a notice, as the server reports it to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError(Box<Fields>);

/// The fields of an error or a notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// `ERROR`, `FATAL`, `NOTICE`, `WARNING`.
    pub severity: &'static str,
    /// The SQLSTATE: five characters.
    pub code: String,
    /// The primary message.
    pub message: String,
    /// The secondary message.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The character of the statement that the error is about, counted from 1.
    pub position: Option<usize>,
    /// The schema of the table.
    pub schema: Option<String>,
    /// The table whose constraint failed.
    pub table: Option<String>,
    /// The column whose constraint failed.
    pub column: Option<String>,
    /// The type whose constraint failed.
    pub data_type: Option<String>,
    /// The constraint that failed.
    pub constraint: Option<String>,
}

impl SqlError {
    /// Makes an error of severity `ERROR`.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        let (code, message) = (code.to_owned(), message.into());
        Self(Box::new(Fields { severity: "ERROR", code, message, ..Fields::default() }))
    }

    /// Makes a notice.
    #[must_use]
    pub fn notice(code: &str, message: impl Into<String>) -> Self {
        Self::new(code, message).with(|fields| fields.severity = "NOTICE")
    }

    /// Makes a warning.
    #[must_use]
    pub fn warning(code: &str, message: impl Into<String>) -> Self {
        Self::new(code, message).with(|fields| fields.severity = "WARNING")
    }

    /// Refuses what the simulated server lacks: 0A000.
    #[must_use]
    pub fn unknown(what: impl fmt::Display) -> Self {
        Self::new("0A000", format!("the simulated PostgreSQL does not know {what}"))
    }

    /// Reports a syntax error: 42601.
    #[must_use]
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new("42601", message)
    }

    /// Refuses what is nested too deeply: 54001. PostgreSQL's limit depends on the size of its stack.
    #[must_use]
    pub(crate) fn stack_depth() -> Self {
        Self::new("54001", "stack depth limit exceeded").hint(
            "Increase the configuration parameter \"max_stack_depth\" (currently 2048kB), after ensuring the \
             platform's stack depth limit is adequate.",
        )
    }

    /// The error of a cancelled statement: `statement_timeout`.
    #[must_use]
    pub fn statement_timeout() -> Self {
        Self::new("57014", "canceling statement due to statement timeout")
    }

    /// The error of a cancelled statement: `lock_timeout`.
    #[must_use]
    pub fn lock_timeout() -> Self {
        Self::new("55P03", "canceling statement due to lock timeout")
    }

    /// The error of a cancelled statement: a request of the client, or `pg_cancel_backend`.
    #[must_use]
    pub fn user_cancel() -> Self {
        Self::new("57014", "canceling statement due to user request")
    }

    /// Changes fields.
    #[must_use]
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Fields)) -> Self {
        change(&mut self.0);
        self
    }

    /// Sets the secondary message.
    #[must_use]
    pub(crate) fn detail(self, detail: impl Into<String>) -> Self {
        self.with(|fields| fields.detail = Some(detail.into()))
    }

    /// Sets the hint.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        self.with(|fields| fields.hint = Some(hint.into()))
    }

    /// Sets the position, unless one is set or it is zero.
    #[must_use]
    pub(crate) fn at(self, position: usize) -> Self {
        self.with(|fields| fields.position = fields.position.or((position > 0).then_some(position)))
    }
}

impl Deref for SqlError {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}

impl DerefMut for SqlError {
    fn deref_mut(&mut self) -> &mut Fields {
        &mut self.0
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity, self.code, self.message)
    }
}

impl std::error::Error for SqlError {}
