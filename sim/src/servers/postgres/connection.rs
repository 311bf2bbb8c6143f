//! One connection: a login, then messages in and answers out.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::future::{Either, select};
use sql::{SessionId, SqlError, TransactionStatus};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::Server;
use super::backend::Output;
use super::frontend::{Frame, Frontend, FrontendError, Phase};
use super::portal::Objects;
use crate::world::machine::Machine;

/// The size of PostgreSQL's output buffer: answers beyond it are sent before the client asks for them.
const OUTPUT_BYTES_MAX: usize = 8192;
/// `authentication_timeout`.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Settings that the server reports when they change. No server is a standby: `login` reports that.
const REPORTED: [&str; 12] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

pub(super) struct Connection<'a, M: Machine, S> {
    pub(super) server: &'a Server<M>,
    pub(super) stream: S,
    /// The client's name for observers.
    pub(super) label: &'a str,
    pub(super) input: BytesMut,
    pub(super) output: Output,
    /// Set once the client has a session.
    pub(super) session: Option<Session>,
    /// The name with which the client has logged in.
    pub(super) user: String,
    pub(super) objects: Objects,
    /// Set while the server waits for a message that may come too late.
    pub(super) idle: Option<Idle>,
    /// The values of settings that the client knows.
    reported: BTreeMap<&'static str, String>,
    /// A statement has run that may have changed them.
    pub(super) may_have_set: bool,
    /// An error of the extended protocol: all messages up to a Sync are ignored.
    is_skipping: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) wake: Arc<Notify>,
}

/// The end of a session that is idle for too long.
#[derive(Debug)]
pub(super) struct Idle {
    /// The time on the monotonic clock, in nanoseconds.
    pub(super) at: u64,
    pub(super) error: SqlError,
}

/// Why a connection ends.
pub(super) enum End {
    /// The client has left, the stream broke, or the client does not keep to the protocol.
    Left,
    /// The server ends it, and says so.
    Fatal(SqlError),
}

/// Why a message is not answered as its client wishes.
pub(super) enum Failure {
    /// The statement has failed; the connection goes on.
    Statement(SqlError),
    /// The connection ends.
    Connection(End),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Left
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Statement(error)
    }
}

impl From<End> for Failure {
    fn from(end: End) -> Self {
        Self::Connection(end)
    }
}

impl<'a, M: Machine, S: AsyncRead + AsyncWrite + Unpin> Connection<'a, M, S> {
    pub(super) fn new(server: &'a Server<M>, stream: S, label: &'a str) -> Self {
        Self {
            server,
            stream,
            label,
            input: BytesMut::new(),
            output: Output::default(),
            session: None,
            user: String::new(),
            objects: Objects::default(),
            idle: None,
            reported: BTreeMap::new(),
            may_have_set: false,
            is_skipping: false,
        }
    }

    /// Serves until the client leaves, the session is ended, or the stream breaks.
    pub(super) async fn serve(mut self) {
        let Err(end) = self.serve_to_end().await;
        if let End::Fatal(mut error) = end {
            self.note_unknown(&error);
            error.severity = "FATAL";
            self.output.report(b'E', &error);
            // The client may have left.
            let _ = self.send().await;
        }
        let _ = self.stream.shutdown().await;
    }

    async fn serve_to_end(&mut self) -> Result<std::convert::Infallible, End> {
        {
            let timeout = self.server.machine().sleep(LOGIN_TIMEOUT);
            match select(pin!(self.log_in()), pin!(timeout)).await {
                Either::Left((logged_in, _)) => logged_in?,
                Either::Right(_) => return Err(End::Left),
            }
        }
        loop {
            let frame = match Frame::take(&mut self.input, Phase::Session) {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    self.listen().await?;
                    continue;
                }
                Err(FrontendError::Length) => return Err(End::Left),
                Err(error) => return Err(End::Fatal(protocol(&error))),
            };
            self.idle = None;
            if self.is_skipping && !matches!(frame.kind, b'S' | b'X') {
                continue;
            }
            self.handle(frame).await?;
            if self.output.len() >= OUTPUT_BYTES_MAX {
                self.send().await?;
            }
        }
    }

    async fn handle(&mut self, frame: Frame) -> Result<(), End> {
        let is_extended = frame.is_extended();
        match frame.read() {
            Ok(Frontend::Terminate) => return Err(End::Left),
            Ok(Frontend::Sync) => {
                self.is_skipping = false;
                self.finish().await?;
            }
            Ok(Frontend::Flush) => self.send().await?,
            Ok(Frontend::Query(sql)) => self.query(&sql).await?,
            Ok(Frontend::Copy) => {}
            Ok(Frontend::FunctionCall) => {
                let error = match self.status() {
                    TransactionStatus::Failed => aborted(),
                    _ => SqlError::unknown("function calls of the protocol: use SELECT"),
                };
                self.refuse(error).await?;
            }
            Ok(message) => match self.extended(message).await {
                Ok(()) => {}
                Err(Failure::Statement(error)) => self.skip(error).await?,
                Err(Failure::Connection(end)) => return Err(end),
            },
            Err(error) if is_extended => self.skip(self.failed(protocol(&error))).await?,
            Err(error) => self.refuse(protocol(&error)).await?,
        }
        Ok(())
    }

    /// Refuses a message that is none of the extended protocol: the transaction fails.
    async fn refuse(&mut self, error: SqlError) -> Result<(), End> {
        let error = self.failed(error);
        self.error(error).await?;
        self.finish().await
    }

    /// Reports an error of the extended protocol, and ignores the messages up to the next Sync.
    async fn skip(&mut self, error: SqlError) -> Result<(), End> {
        self.is_skipping = true;
        self.error(error).await
    }

    /// Adds notifications, unless a transaction is open: PostgreSQL delivers them after its end.
    pub(super) fn notify(&mut self, session: SessionId) {
        let notifications = {
            let mut core = self.server.core();
            match core.database.status(session) {
                TransactionStatus::Idle => core.take_notifications(session),
                _ => return,
            }
        };
        for notification in &notifications {
            let process = notification.from.0.cast_unsigned();
            self.output.notification(process, &notification.channel, &notification.payload);
        }
    }

    /// Fails the transaction after an error that the server itself has found.
    pub(super) fn failed(&self, error: SqlError) -> SqlError {
        if let Some(session) = &self.session {
            self.server.act(session.id, |core, _| core.database.fail(session.id));
        }
        error
    }

    /// Sends an error at once, as PostgreSQL does.
    pub(super) async fn error(&mut self, error: SqlError) -> Result<(), End> {
        self.note_unknown(&error);
        self.output.report(b'E', &error);
        self.send().await
    }

    /// Ends the implicit transaction, and says that the server is ready.
    async fn finish(&mut self) -> Result<(), End> {
        if let Err(error) = self.commit() {
            self.error(error).await?;
        }
        self.ready().await
    }

    /// Ends the implicit transaction.
    pub(super) fn commit(&mut self) -> Result<(), SqlError> {
        let Some(session) = &self.session else { return Ok(()) };
        let id = session.id;
        let committed = self.server.act(id, |core, clocks| core.sync(id, clocks));
        if self.status() == TransactionStatus::Idle {
            self.objects.end_transaction();
        }
        committed
    }

    /// Reports changed settings, and says that the server is ready.
    pub(super) async fn ready(&mut self) -> Result<(), End> {
        if let Some(session) = &self.session {
            self.notify(session.id);
        }
        if std::mem::take(&mut self.may_have_set) {
            self.report_settings();
        }
        let status = match self.status() {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InTransaction => b'T',
            TransactionStatus::Failed => b'E',
        };
        self.output.ready(status);
        self.begin_idle();
        self.send().await
    }

    pub(super) fn status(&self) -> TransactionStatus {
        match &self.session {
            Some(session) => self.server.core().database.status(session.id),
            None => TransactionStatus::Idle,
        }
    }

    pub(super) async fn send(&mut self) -> Result<(), End> {
        if !self.output.is_empty() {
            self.stream.write_all(self.output.bytes()).await?;
            self.stream.flush().await?;
            self.output.clear();
        }
        Ok(())
    }

    /// Returns the session, which every client has after its login.
    pub(super) fn session(&self) -> Result<SessionId, End> {
        self.session.as_ref().map(|session| session.id).ok_or(End::Left)
    }

    pub(super) fn begin_session(&mut self, id: SessionId, wake: Arc<Notify>) {
        self.session = Some(Session { id, wake });
    }
}

impl<M: Machine, S> Connection<'_, M, S> {
    /// Notes what the server does not know. PostgreSQL has errors of its own with the same code.
    fn note_unknown(&self, error: &SqlError) {
        let unknown = SqlError::unknown("");
        if error.code == unknown.code && error.message.starts_with(unknown.message.as_str()) {
            self.server.machine().refused_unknown(&error.message);
        }
    }

    /// Adds the settings that the client does not know, or knows with another value.
    pub(super) fn report_settings(&mut self) {
        let Some(session) = &self.session else { return };
        let core = self.server.core();
        for name in REPORTED {
            let value = match name {
                // The database does not know the user.
                "session_authorization" => Some(self.user.clone()),
                name => core.database.setting(session.id, name),
            };
            let Some(value) = value else { continue };
            if self.reported.get(name) != Some(&value) {
                self.output.parameter(name, &value);
                self.reported.insert(name, value);
            }
        }
    }
}

impl<M: Machine, S> Drop for Connection<'_, M, S> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.server.act(session.id, |core, clocks| core.close(session.id, clocks));
        }
    }
}

/// Returns the time `millis` after `nanos`.
pub(super) fn after(nanos: u64, millis: u64) -> u64 {
    nanos.saturating_add(millis.saturating_mul(1_000_000))
}

/// Completes at the time `nanos` on the monotonic clock; never without one.
pub(super) async fn sleep_until(machine: &impl Machine, nanos: Option<u64>) {
    match nanos {
        Some(nanos) => machine.sleep_until(nanos).await,
        None => std::future::pending().await,
    }
}

/// Returns the error for a message that can't be read.
pub(super) fn protocol(error: &FrontendError) -> SqlError {
    let code = if matches!(error, FrontendError::Encoding(_)) { "22021" } else { "08P01" };
    SqlError::new(code, error.to_string())
}

/// Makes the error of a message in a failed transaction: 25P02.
pub(super) fn aborted() -> SqlError {
    let problem = "current transaction is aborted, commands ignored until end of transaction block";
    SqlError::new("25P02", problem)
}

pub(super) fn terminated() -> SqlError {
    SqlError::new("57P01", "terminating connection due to administrator command")
}
