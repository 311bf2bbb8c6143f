//! The calls of a server.

mod replay;
mod run;
mod transaction;
mod utility;

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlparser::ast::Statement;

use crate::api::{Column, Notification, SessionId, Step, TransactionStatus};
use crate::error::SqlError;
use crate::log::Record;
use crate::plan::binder::Binder;
use crate::plan::expr::Plan;
use crate::session::{Block, Session, is_aborted};
use crate::storage::catalog::Viewer;
use crate::storage::lock::in_words;
use crate::storage::store::Store;
use crate::syntax::parse::{Command, Parsed, statements};
use crate::syntax::utility::Utility;
use crate::value::types::Type;

/// A database in memory: tables, sequences, transactions, locks, and sessions.
#[derive(Debug, Default)]
pub struct Database {
    store: Store,
    sessions: BTreeMap<SessionId, Session>,
    last_session: i32,
    notifications: Vec<Notification>,
}

/// A statement with the types of its parameters and columns.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The types of `$1`, `$2`, and so on.
    pub parameters: Vec<Type>,
    /// The columns of the rows that it returns; `None` if it returns no rows (`NoData`).
    pub columns: Option<Vec<Column>>,
    parsed: Option<Parsed>,
    plan: Option<Planned>,
}

/// A plan, and the names that it was made with.
#[derive(Clone, Debug)]
struct Planned {
    plan: Arc<Plan>,
    catalog_version: u64,
    search_path: Vec<String>,
}

impl Prepared {
    /// Returns whether the text had no statement: answer `EmptyQueryResponse`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parsed.is_none()
    }
}

impl Database {
    /// Makes an empty database.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a session.
    pub fn connect(&mut self) -> SessionId {
        self.last_session += 1;
        let id = SessionId(self.last_session);
        self.sessions.insert(id, Session::new(id));
        id
    }

    /// Ends a session: rolls its transaction back and releases its locks.
    pub fn disconnect(&mut self, session: SessionId) {
        self.store.locks.end_wait(session);
        self.store.abort(session);
        self.store.locks.give_advisory(session);
        self.sessions.remove(&session);
    }

    /// Parses the statements of a simple query; an empty text has none.
    ///
    /// # Errors
    ///
    /// 42601 for text that is not SQL.
    pub fn statements(sql: &str) -> Result<Vec<Parsed>, SqlError> {
        statements(sql)
    }

    /// Prepares the only statement of a text. Parameters of type `Unknown`, or that are not listed, get the
    /// types that PostgreSQL infers.
    ///
    /// # Errors
    ///
    /// Those of parsing and of names and types. The transaction block, if there is one, is failed then.
    pub fn prepare(&mut self, session: SessionId, sql: &str, types: &[Type]) -> Result<Prepared, SqlError> {
        let prepared = statements(sql).and_then(|parsed| match &parsed[..] {
            [] => Ok(Prepared { parameters: Vec::new(), columns: None, parsed: None, plan: None }),
            [parsed] => self.resolve(session, parsed, types),
            _ => Err(SqlError::syntax("cannot insert multiple commands into a prepared statement")),
        });
        prepared.inspect_err(|_| self.fail(session))
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
        self.resolve(session, parsed, types).inspect_err(|_| self.fail(session))
    }

    fn resolve(&self, session: SessionId, parsed: &Parsed, types: &[Type]) -> Result<Prepared, SqlError> {
        self.check_block(session, &parsed.command)?;
        let mut prepared =
            Prepared { parameters: types.to_vec(), columns: None, parsed: Some(parsed.clone()), plan: None };
        match &parsed.command {
            Command::Utility(Utility::Show(name)) => {
                prepared.columns = Some(vec![Column { name: shown_name(name), r#type: Type::Text }]);
            }
            Command::Utility(_) => {}
            Command::Sql(statement) => {
                let viewer = self.viewer(session);
                let search_path = viewer.search_path.clone();
                let binder = Binder::new(&self.store, viewer, &parsed.text, types.to_vec());
                if let Some(plan) = crate::plan::plan(binder, statement)? {
                    prepared.parameters.clone_from(&plan.parameters);
                    prepared.columns = plan.has_columns.then(|| plan.query.columns.clone());
                    let catalog_version = self.store.catalog_version;
                    prepared.plan = Some(Planned { plan: Arc::new(plan), catalog_version, search_path });
                }
            }
        }
        Ok(prepared)
    }

    /// Returns the plan of a statement; `None` for one that changes the catalog. It is made anew if the
    /// catalog has changed.
    fn plan_of(
        &self,
        session: SessionId,
        prepared: &Prepared,
        parsed: &Parsed,
        statement: &Statement,
    ) -> Result<Option<Arc<Plan>>, SqlError> {
        let viewer = self.viewer(session);
        let is_current = |planned: &&Planned| {
            planned.catalog_version == self.store.catalog_version && planned.search_path == viewer.search_path
        };
        if let Some(planned) = prepared.plan.as_ref().filter(is_current) {
            return Ok(Some(Arc::clone(&planned.plan)));
        }
        let binder = Binder::new(&self.store, viewer, &parsed.text, prepared.parameters.clone());
        Ok(crate::plan::plan(binder, statement)?.map(Arc::new))
    }

    /// Refuses a statement in a failed block: only its end is allowed.
    fn check_block(&self, session: SessionId, command: &Command) -> Result<(), SqlError> {
        let is_failed = self.sessions.get(&session).is_some_and(|session| session.block == Block::Failed);
        let is_end = matches!(
            command,
            Command::Utility(Utility::Commit { .. } | Utility::Rollback { .. } | Utility::RollbackTo(_))
        );
        if is_failed && !is_end { Err(is_aborted()) } else { Ok(()) }
    }

    fn viewer(&self, session: SessionId) -> Viewer {
        let xid = self.store.transactions.get(&session).map(|transaction| transaction.xid);
        let settings = self.sessions.get(&session).map(|session| &session.settings);
        Viewer { xid, search_path: settings.map(|settings| settings.search_path()).unwrap_or_default() }
    }

    /// Returns the state of the transaction block.
    #[must_use]
    pub fn status(&self, session: SessionId) -> TransactionStatus {
        match self.sessions.get(&session).map(|session| session.block) {
            None | Some(Block::None) => TransactionStatus::Idle,
            Some(Block::Open) => TransactionStatus::InTransaction,
            Some(Block::Failed) => TransactionStatus::Failed,
        }
    }

    /// Returns the sessions whose wait may be over, in the order in which they began to wait.
    pub fn take_woken(&mut self) -> Vec<SessionId> {
        self.store.locks.take_woken()
    }

    /// Ends a blocked or sleeping statement with an error, as [`Self::run`] would have returned it.
    pub fn cancel(&mut self, session: SessionId, error: SqlError) -> Step {
        self.fail(session);
        Step::Failed(error)
    }

    /// Returns the circle of sessions in which a blocked session waits for itself, beginning with it. Ask
    /// after `deadlock_timeout`, and cancel the session that asks with [`Self::deadlock_error`].
    #[must_use]
    pub fn deadlock(&self, session: SessionId) -> Option<Vec<SessionId>> {
        self.store.locks.circle(session)
    }

    /// Makes the error of the session that a deadlock ends: 40P01.
    #[must_use]
    pub fn deadlock_error(&self, circle: &[SessionId]) -> SqlError {
        let next = circle.iter().skip(1).chain(circle.first());
        let lines = circle.iter().zip(next).map(|(waiter, blocker)| {
            let number = self.store.transactions.get(blocker).and_then(|transaction| transaction.number);
            let what =
                self.store.locks.wait_of(*waiter).map(|wait| in_words(&wait.what, number.unwrap_or(0)));
            let what = what.unwrap_or_default();
            format!("Process {} waits for {what}; blocked by process {}.", waiter.0, blocker.0)
        });
        let lines: Vec<_> = lines.collect();
        SqlError::new("40P01", "deadlock detected")
            .detail(lines.join("\n"))
            .hint("See server log for query details.")
    }

    /// Returns the value of a setting as `SHOW` prints it.
    #[must_use]
    pub fn setting(&self, session: SessionId, name: &str) -> Option<String> {
        let name = name.to_lowercase();
        if let Some(value) = self.store.transaction_setting(session, &name) {
            return Some(value);
        }
        let name = match name.as_str() {
            "transaction_isolation" => "default_transaction_isolation",
            "transaction_read_only" => "default_transaction_read_only",
            other => other,
        };
        self.sessions.get(&session)?.settings.get(name)
    }

    /// Returns a setting in milliseconds, such as `statement_timeout`; 0 is none.
    #[must_use]
    pub fn setting_millis(&self, session: SessionId, name: &str) -> u64 {
        self.sessions.get(&session).map_or(0, |session| session.settings.millis(name))
    }

    /// Sets a setting with which the session begins, such as a parameter of the startup message: `RESET` and
    /// `DISCARD ALL` go back to it.
    ///
    /// # Errors
    ///
    /// 42704 and 22023 for a name or a value that does not exist.
    pub fn set(&mut self, session: SessionId, name: &str, value: &str) -> Result<(), SqlError> {
        self.sessions.get_mut(&session).map_or(Ok(()), |session| session.settings.set_base(name, value))
    }

    /// Returns the notifications of committed transactions.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        std::mem::take(&mut self.notifications)
    }

    /// Returns the records of the write-ahead log since the last call. A record is lost unless it is written
    /// and synced; a client may be told of its commit only after all records so far are, unless
    /// `synchronous_commit` is off.
    pub fn take_log(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.store.log)
    }
}

/// Returns the name of the column that `SHOW` returns.
fn shown_name(name: &str) -> String {
    match name {
        "timezone" => "TimeZone".to_owned(),
        "datestyle" => "DateStyle".to_owned(),
        other => other.to_owned(),
    }
}
