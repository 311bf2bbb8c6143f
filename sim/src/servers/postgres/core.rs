//! The state that all connections share: the database, its log, and the statements that wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use sql::{Database, Notification, Now, Prepared, SessionId, SqlError, Step, TransactionStatus, Value};
use tokio::sync::Notify;

use super::log::Log;

/// The interval at which PostgreSQL's writer of the log wakes (`wal_writer_delay`), in nanoseconds.
const WRITER_NANOS: u64 = 200_000_000;
/// The writer has synced an asynchronous commit when it has woken this often.
const WRITER_ROUNDS: u64 = 3;

/// The state that all connections share.
pub(super) struct Core {
    pub(super) database: Database,
    pub(super) log: Log,
    backends: BTreeMap<SessionId, Backend>,
    /// The number of statements that have run.
    pub(super) executed: u64,
    /// The table whose stored rows are passed on; `None` if nobody watches one.
    watched: Option<String>,
}

/// The readings of the machine's clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    pub(super) wall: Now,
    /// Nanoseconds on the monotonic clock.
    pub(super) monotonic: u64,
}

/// A statement with the values of its parameters.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) prepared: Arc<Prepared>,
    pub(super) values: Arc<[Value]>,
}

/// The server's side of a session.
struct Backend {
    secret: u32,
    /// The name of the client's process.
    label: String,
    /// Notified of a result, a notification or an interrupt.
    wake: Arc<Notify>,
    statement: Waiting,
    interrupt: Option<Interrupt>,
    notifications: Vec<Notification>,
    /// The transaction has written records to the log.
    has_written: bool,
    /// The points that its statements have passed, for its connection to pass on.
    points: Vec<String>,
    /// The rows of the watched table that its commits have stored, for its connection to pass on.
    stored: Vec<Row>,
}

/// The texts of a row's values.
pub(super) type Row = Vec<Option<String>>;

/// The statement of a session that waits.
enum Waiting {
    None,
    /// It waits.
    Parked {
        statement: Statement,
        on: Wait,
        /// The lock, if it waits for one.
        lock: Option<String>,
    },
    /// It has ended, and its connection does not know yet.
    Over(Step),
}

/// What a statement waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Locks of others, since this time on the monotonic clock.
    Locks { since: u64 },
    /// A time on the wall clock.
    Time { until: Now },
}

/// A request to a session from outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// End the statement that waits.
    Cancel,
    /// End the session.
    Terminate,
}

impl Core {
    pub(super) fn new(database: Database, log: Log, watched: Option<String>) -> Self {
        Self { database, log, backends: BTreeMap::new(), executed: 0, watched }
    }

    /// Returns the number of sessions.
    pub(super) fn sessions(&self) -> usize {
        self.backends.len()
    }

    /// Opens a session of the client `label`. Returns it with the object that is notified of its events.
    pub(super) fn open(
        &mut self,
        label: &str,
        secret: impl FnOnce(SessionId) -> u32,
    ) -> (SessionId, Arc<Notify>) {
        let session = self.database.connect();
        let wake = Arc::new(Notify::new());
        let backend = Backend {
            secret: secret(session),
            label: label.to_owned(),
            wake: Arc::clone(&wake),
            statement: Waiting::None,
            interrupt: None,
            notifications: Vec::new(),
            has_written: false,
            points: Vec::new(),
            stored: Vec::new(),
        };
        self.backends.insert(session, backend);
        (session, wake)
    }

    /// Runs statements in a session of their own, each in a transaction of its own.
    pub(super) fn preset(&mut self, sql: &str, clocks: Clocks) -> Result<(), SqlError> {
        let (session, _) = self.open("", |_| 0);
        for parsed in Database::statements(sql)? {
            let prepared = Arc::new(self.database.prepare_parsed(session, &parsed, &[])?);
            if let Step::Failed(error) =
                self.run(session, Statement { prepared, values: Arc::from([]) }, clocks)
            {
                return Err(error);
            }
            self.sync(session, clocks)?;
        }
        self.close(session, clocks);
        Ok(())
    }

    /// Ends a session: its transaction is rolled back, and those that waited for it go on.
    pub(super) fn close(&mut self, session: SessionId, clocks: Clocks) {
        if self.backends.remove(&session).is_some() {
            self.database.disconnect(session);
            self.settle(clocks);
        }
    }

    /// Returns the secret key of a session.
    pub(super) fn secret(&self, session: SessionId) -> Option<u32> {
        self.backends.get(&session).map(|backend| backend.secret)
    }

    /// Begins a statement. If it has to wait, [`Core::waiting`] says for what, and [`Core::take_step`] has
    /// its result later.
    pub(super) fn run(&mut self, session: SessionId, statement: Statement, clocks: Clocks) -> Step {
        let step = self.attempt(session, &statement, clocks);
        let lock = self.lock(session, &step);
        if let (Some(on), Some(backend)) = (wait(&step, clocks), self.backends.get_mut(&session)) {
            backend.statement = Waiting::Parked { statement, on, lock };
        }
        self.settle(clocks);
        step
    }

    /// Ends the implicit transaction.
    pub(super) fn sync(&mut self, session: SessionId, clocks: Clocks) -> Result<(), SqlError> {
        let is_lazy = self.is_lazy(session);
        let is_in_block = self.database.status(session) != TransactionStatus::Idle;
        let result = self.database.sync(session);
        self.write_ahead(session, !is_in_block, is_lazy, clocks);
        let has_written = match self.backends.get_mut(&session) {
            Some(backend) if !is_in_block => std::mem::take(&mut backend.has_written),
            _ => false,
        };
        self.settle(clocks);
        if let (true, Some(backend)) = (has_written && result.is_ok(), self.backends.get_mut(&session)) {
            backend.points.push(COMMIT.to_owned());
        }
        result
    }

    /// Ends the statement of a session that waits with an error. Returns its result.
    pub(super) fn cancel(&mut self, session: SessionId, error: SqlError, clocks: Clocks) -> Step {
        let step = self.database.cancel(session, error);
        if let Some(backend) = self.backends.get_mut(&session) {
            backend.statement = Waiting::None;
        }
        self.settle(clocks);
        step
    }

    /// Returns the result of a statement that has waited.
    pub(super) fn take_step(&mut self, session: SessionId) -> Option<Step> {
        let statement = &mut self.backends.get_mut(&session)?.statement;
        match std::mem::replace(statement, Waiting::None) {
            Waiting::Over(step) => Some(step),
            waiting => {
                *statement = waiting;
                None
            }
        }
    }

    /// Returns what the statement of a session waits for.
    pub(super) fn waiting(&self, session: SessionId) -> Option<Wait> {
        match self.backends.get(&session)?.statement {
            Waiting::Parked { on, .. } => Some(on),
            _ => None,
        }
    }

    /// Runs the statement of a session whose sleep may be over.
    pub(super) fn awake(&mut self, session: SessionId, clocks: Clocks) {
        self.resume(session, clocks);
        self.settle(clocks);
    }

    /// Interrupts the session with this number if `secret` is its key.
    pub(super) fn request_cancel(&mut self, session: SessionId, secret: u32) -> bool {
        let found = self.backends.get_mut(&session).filter(|backend| backend.secret == secret);
        found.map(|backend| backend.interrupt(Interrupt::Cancel)).is_some()
    }

    /// Terminates the sessions of the client `label`. Returns their number.
    pub(super) fn terminate(&mut self, label: &str) -> usize {
        let theirs = self.backends.values_mut().filter(|backend| backend.label == label);
        theirs.map(|backend| backend.interrupt(Interrupt::Terminate)).count()
    }

    pub(super) fn take_interrupt(&mut self, session: SessionId) -> Option<Interrupt> {
        self.backends.get_mut(&session)?.interrupt.take()
    }

    pub(super) fn take_notifications(&mut self, session: SessionId) -> Vec<Notification> {
        self.backends
            .get_mut(&session)
            .map(|backend| std::mem::take(&mut backend.notifications))
            .unwrap_or_default()
    }

    /// Returns the points that the session's statements have passed. Pass them to the machine while the core
    /// is not locked.
    pub(super) fn take_points(&mut self, session: SessionId) -> Vec<String> {
        self.backends.get_mut(&session).map(|backend| std::mem::take(&mut backend.points)).unwrap_or_default()
    }

    /// Returns the rows of the watched table that the session's commits have stored. Pass them on while the
    /// core is not locked.
    pub(super) fn take_stored(&mut self, session: SessionId) -> Vec<Row> {
        self.backends.get_mut(&session).map(|backend| std::mem::take(&mut backend.stored)).unwrap_or_default()
    }

    /// Runs a statement, and writes the log.
    fn attempt(&mut self, session: SessionId, statement: &Statement, clocks: Clocks) -> Step {
        let is_lazy = self.is_lazy(session);
        let step = self.database.run(session, &statement.prepared, &statement.values, clocks.wall);
        let tag = match &step {
            Step::Done { tag, .. } => tag.as_str(),
            _ => "",
        };
        let is_commit = tag == COMMIT;
        self.write_ahead(session, is_commit, is_lazy, clocks);
        // A rollback to a savepoint has the same tag.
        let is_rollback = tag == ROLLBACK && self.database.status(session) == TransactionStatus::Idle;
        if let Some(backend) = self.backends.get_mut(&session).filter(|_| is_commit || is_rollback) {
            backend.has_written = false;
        }
        self.executed += u64::from(wait(&step, clocks).is_none());
        if let (Step::Done { tag, .. }, Some(backend)) = (&step, self.backends.get_mut(&session)) {
            backend.points.push(verb(tag).to_owned());
        }
        step
    }

    /// Runs the statements that need not wait any more, in the order in which they began to wait, and
    /// delivers notifications.
    fn settle(&mut self, clocks: Clocks) {
        loop {
            let woken = self.database.take_woken();
            if woken.is_empty() {
                break;
            }
            woken.into_iter().for_each(|session| self.resume(session, clocks));
        }
        for notification in self.database.take_notifications() {
            if let Some(backend) = self.backends.get_mut(&notification.to) {
                backend.notifications.push(notification);
                backend.wake.notify_one();
            }
        }
    }

    fn resume(&mut self, session: SessionId, clocks: Clocks) {
        let Some(backend) = self.backends.get(&session) else { return };
        let Waiting::Parked { statement, on, lock } = &backend.statement else { return };
        let (statement, waited_on, waited_for) = (statement.clone(), *on, lock.clone());
        let step = self.attempt(session, &statement, clocks);
        let lock = self.lock(session, &step);
        // It has kept its place in the queue of a lock that it still does not get: its wait goes on.
        let is_same = lock.is_some() && lock == waited_for;
        let on = wait(&step, clocks).map(|on| if is_same { waited_on } else { on });
        if let Some(backend) = self.backends.get_mut(&session) {
            backend.statement = match on {
                Some(on) => Waiting::Parked { statement, on, lock },
                None => Waiting::Over(step),
            };
            backend.wake.notify_one();
        }
    }

    /// Returns the lock that a statement waits for: the mode and the object in the words of a deadlock's
    /// error. A wait for a row is one for the transaction that has it, so another holder is another wait.
    fn lock(&self, session: SessionId, step: &Step) -> Option<String> {
        let Step::Blocked { on } = step else { return None };
        let error = self.database.deadlock_error(&[session, *on.first()?]);
        let (lock, _) = error.detail.as_deref()?.split_once("; blocked by ")?;
        Some(lock.to_owned())
    }

    /// Returns true if the session's commits are asynchronous. Read it before a commit, which ends SET LOCAL.
    fn is_lazy(&self, session: SessionId) -> bool {
        let setting = self.database.setting(session, "synchronous_commit");
        matches!(setting.as_deref(), Some("off" | "false"))
    }

    /// Writes the new records of the log. If a transaction has ended, and was not lazy, syncs the log.
    fn write_ahead(&mut self, session: SessionId, has_ended: bool, is_lazy: bool, clocks: Clocks) {
        let records = self.database.take_log();
        let due =
            (clocks.monotonic / WRITER_NANOS).saturating_add(WRITER_ROUNDS).saturating_mul(WRITER_NANOS);
        records.iter().for_each(|record| self.log.add(&record.to_bytes(), due));
        let Some(backend) = self.backends.get_mut(&session) else { return };
        if let Some(table) = &self.watched {
            backend.stored.extend(records.iter().flat_map(|record| record.stored(table)).map(<[_]>::to_vec));
        }
        backend.has_written |= !records.is_empty();
        if has_ended && backend.has_written && !is_lazy {
            self.log.sync();
        }
    }
}

impl Backend {
    fn interrupt(&mut self, interrupt: Interrupt) {
        // A request to cancel does not replace one to terminate.
        if self.interrupt != Some(Interrupt::Terminate) {
            self.interrupt = Some(interrupt);
        }
        self.wake.notify_one();
    }
}

/// The command tag of a commit, and the point that every commit with changes passes.
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

fn wait(step: &Step, clocks: Clocks) -> Option<Wait> {
    match step {
        Step::Blocked { .. } => Some(Wait::Locks { since: clocks.monotonic }),
        Step::Sleeping { until } => Some(Wait::Time { until: *until }),
        Step::Done { .. } | Step::Failed(_) => None,
    }
}

/// Returns a command tag without its counts: `INSERT` of `INSERT 0 1`.
fn verb(tag: &str) -> &str {
    tag.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ')
}
