//! A PostgreSQL server, version 15, as far as its clients can observe one: the protocol in version 3.0, and
//! the SQL that the crate `fencepost-sql` knows.
//!
//! There is one database, which clients reach under any name; every user may do everything. Left out on
//! purpose: COPY, function calls and replication, which are refused with an error that names them, and
//! encryption, which the server declines when a client asks for it (`servers::tls::Secured` adds it).
//!
//! A statement that waits for a lock does not read from its connection, as in PostgreSQL
//! (`client_connection_check_interval` is 0): if the client has left, the server notices it at the next read.
//! The statement then has ended, and its transaction is rolled back unless the statement was the whole of it.
//!
//! A commit is synced to the disk before it is acknowledged. With `synchronous_commit` off, it is written and
//! synced within 600 ms, three times `wal_writer_delay`: a crash before that loses it, as a crash of
//! PostgreSQL does, which keeps it in its memory until then.

// `frontend` and `backend` are the messages, `value` the formats of values, `log` the disk; `core` runs
// statements, `connection` is the wire, with `login`, `query` (the simple protocol), `extended`, `wait`
// (statements that wait) and `idle` (no statement); `portal` keeps a connection's prepared statements and
// portals, and `control` finds the statements that change them; `host` starts and stops a server.

mod backend;
mod connection;
mod control;
mod core;
mod extended;
pub(crate) mod frontend;
mod host;
mod idle;
mod log;
mod login;
mod portal;
mod query;
mod scram;
mod value;
mod wait;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use dlock_runtime::{Probe, probes, reached, sometimes};
use sha2::{Digest, Sha256};
use sql::{Database, Now, Record, SessionId, SqlError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

#[doc(hidden)]
pub use host::PORT;
pub use host::PostgresHost;

use self::core::{Clocks, Core};
use self::log::Log;
use self::scram::Verifier;
use crate::world::lock;
use crate::world::machine::{Machine, WorldMachine};
use connection::Connection;

/// The probes of a server, file by file.
pub(super) const PROBES: &[&[&Probe]] =
    &[probe::ALL, extended::probe::ALL, idle::probe::ALL, login::probe::ALL, wait::probe::ALL];

/// The options of a server, the same in every life.
#[derive(Clone, Debug)]
struct Options {
    /// The password of all users; `None` if they need none.
    password: Option<Verifier>,
    /// Settings in place of PostgreSQL's own.
    settings: Vec<(String, String)>,
    sessions_max: usize,
    /// The number of the server's life, for keys that differ from life to life.
    life: u32,
    watch: Option<Watch>,
}

/// A table, and the function that is called with each row that a commit has stored in it.
#[derive(Clone)]
struct Watch {
    table: String,
    observe: Observe,
}

/// A function that is called with the values of a row.
type Observe = Arc<dyn Fn(&[Option<String>]) + Send + Sync>;

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("table", &self.table).finish_non_exhaustive()
    }
}

/// A server in one life of its process. Clones are the same server.
struct Server<M = WorldMachine> {
    shared: Arc<Shared<M>>,
}

struct Shared<M> {
    machine: M,
    options: Options,
    core: Mutex<Core>,
    /// Notified when a sync of the log becomes due.
    has_records: Notify,
}

impl<M: Machine> Server<M> {
    /// Starts a server with the data that its log holds.
    ///
    /// # Panics
    ///
    /// If the log does not fit: a server with a part of the data would mislead everyone, and a run has no
    /// other way to end with an error. Its own log fits, as long as nothing else writes to the disk.
    fn new(options: Options, machine: M) -> Self {
        let log = Log::open(&machine);
        let restored = log.restore();
        sometimes!(machine, log_torn, restored.was_torn);
        sometimes!(machine, rows_restored, !restored.records.is_empty());
        let mut database = Database::new();
        let failed = replay(&mut database, &restored.records).err();
        assert!(
            failed.is_none(),
            "PANIC: the PostgreSQL server {} can't start from its log: {}",
            machine.name(),
            failed.map(|e| e.to_string()).unwrap_or_default()
        );
        let watched = options.watch.as_ref().map(|watch| watch.table.clone());
        let core = Mutex::new(Core::new(database, log, watched));
        Self { shared: Arc::new(Shared { machine, options, core, has_records: Notify::new() }) }
    }

    /// Runs SQL as part of the state in which a run begins.
    ///
    /// # Panics
    ///
    /// If the SQL fails: it is an error of the world's author, who has no other way to learn of it.
    fn preset(&self, sql: &str) {
        let failed = self.core().preset(sql, self.clocks()).err();
        assert!(
            failed.is_none(),
            "the preset `{sql}` of {} failed: {}",
            self.machine().name(),
            failed.map(|e| e.to_string()).unwrap_or_default()
        );
    }

    /// Serves one connection until the client leaves, the session is ended, or the stream breaks. `client` is
    /// the client's name for observers.
    async fn serve_connection(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send, client: &str) {
        Connection::new(self, stream, client).serve().await;
    }

    /// Syncs asynchronous commits when they are due. Run it beside the connections.
    async fn write_log(&self) {
        loop {
            let due = self.core().log.due();
            match due {
                None => self.shared.has_records.notified().await,
                Some(due) => {
                    self.machine().sleep_until(due).await;
                    let is_lazy = self.core().log.sync_due(self.machine().monotonic_nanos());
                    sometimes!(self.machine(), lazy_commit_synced, is_lazy);
                }
            }
        }
    }

    /// Ends the sessions of a client, as `pg_terminate_backend` does. Returns their number.
    fn terminate(&self, client: &str) -> usize {
        self.core().terminate(client)
    }

    /// Ends the statement of a session that waits, if `secret` is the session's key.
    fn request_cancel(&self, session: SessionId, secret: u32) {
        let is_known = self.core().request_cancel(session, secret);
        sometimes!(self.machine(), cancel_of_unknown, !is_known);
        if is_known {
            reached!(self.machine(), cancel_requested);
        }
    }

    /// Syncs the log, as an orderly shutdown does.
    fn shut_down(&self) {
        self.core().log.sync();
    }

    /// Returns the number of statements that have run.
    fn executed(&self) -> u64 {
        self.core().executed
    }

    fn machine(&self) -> &M {
        &self.shared.machine
    }

    fn clocks(&self) -> Clocks {
        let machine = self.machine();
        let unix_micros = i64::try_from(machine.wall_micros()).unwrap_or(i64::MAX);
        Clocks { wall: Now { unix_micros }, monotonic: machine.monotonic_nanos() }
    }

    /// Calls `act` with the shared state and the clocks, then passes the session's stored rows to their
    /// observer, and the points of its statements to the machine.
    fn act<T>(&self, session: SessionId, act: impl FnOnce(&mut Core, Clocks) -> T) -> T {
        let clocks = self.clocks();
        let (outcome, stored, points, is_due) = {
            let mut core = self.core();
            let outcome = act(&mut core, clocks);
            (outcome, core.take_stored(session), core.take_points(session), core.log.due().is_some())
        };
        if is_due {
            self.shared.has_records.notify_one();
        }
        if let Some(watch) = &self.shared.options.watch {
            stored.iter().for_each(|row| (watch.observe)(row));
        }
        points.iter().for_each(|point| self.machine().point(point));
        outcome
    }

    /// Returns bytes that differ between sessions, lives and machines. Nobody in a simulation guesses them.
    fn secret(&self, session: SessionId, purpose: &str) -> [u8; 32] {
        let name = self.machine().name();
        Sha256::digest(format!("{name} {} {} {purpose}", self.shared.options.life, session.0)).into()
    }
}

/// Applies the records of a log to a new database.
fn replay(database: &mut Database, records: &[Vec<u8>]) -> Result<(), SqlError> {
    let read = |record: &Vec<u8>| {
        Record::from_bytes(record).ok_or_else(|| SqlError::new("XX000", "a record can't be read"))
    };
    database.replay(&records.iter().map(read).collect::<Result<Vec<_>, _>>()?)
}

impl<M> Server<M> {
    fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.shared.core)
    }
}

impl<M> Clone for Server<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<M> fmt::Debug for Server<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

probes! {
    /// A server began with data that its disk had kept.
    sometimes rows_restored;
    /// The log ended in a part of a record.
    sometimes log_torn;
    /// Asynchronous commits were synced by the writer of the log.
    sometimes lazy_commit_synced;
    /// A client asked to cancel the statement of a session.
    reached cancel_requested;
    /// A client asked to cancel a statement with a wrong key, or of a session that has ended.
    sometimes cancel_of_unknown;
}
