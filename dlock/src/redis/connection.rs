//! One connection for all locks on a server: opened by the first call and replaced when it fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use dlock_runtime::Runtime;
use futures_util::future::select;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisConnectionInfo, RedisError, Value};
use tokio::sync::oneshot;

use super::commands::Commands;
use super::script::Script;
use crate::error::{BackendError, SILENT};
use crate::single_flight::SingleFlight;

/// Opens connections to one Redis server; at most one at a time takes new requests.
pub(super) struct Connector<R> {
    runtime: R,
    address: Box<str>,
    info: RedisConnectionInfo,
    shared: SingleFlight<Arc<Connection>>,
}

/// A connection that answers requests in the order in which they were sent.
pub(crate) struct Connection {
    pipe: MultiplexedConnection,
    /// Set when the stream has ended: requests that are sent later have no effect.
    closed: Arc<AtomicBool>,
    /// The scripts that the server has run for this connection, and so knows: one bit each.
    known_scripts: AtomicU32,
    /// True once the server has refused the text of a script to this user.
    is_digest_only: AtomicBool,
    /// The commands of the server for release and renewal.
    commands: Commands,
    /// Dropped with the last user of the connection; it ends the driver, and with it the stream.
    _close: oneshot::Sender<()>,
}

impl<R: Runtime> Connector<R> {
    pub(super) fn new(runtime: R, address: &str, info: RedisConnectionInfo) -> Self {
        // Sending the name of the client library would cost a round trip before the first lock.
        let info = info.set_skip_set_lib_name();
        Self { runtime, address: address.into(), info, shared: SingleFlight::default() }
    }

    pub(super) fn runtime(&self) -> &R {
        &self.runtime
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the login data.
    pub(super) fn info(&self) -> &RedisConnectionInfo {
        &self.info
    }

    /// Returns the open connection, or a new one. Waits for as long as the network stays silent.
    ///
    /// # Errors
    ///
    /// [`BackendError::Unreachable`], of this caller's attempt or of the one that it waited for.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, BackendError> {
        let is_open = |connection: &Arc<Connection>| connection.is_open();
        let seen = match self.shared.current(is_open) {
            Ok(connection) => return Ok(connection),
            Err(seen) => seen,
        };
        let turn = self.shared.turn().await;
        if let Some(shared) = turn.shared(&seen, is_open) {
            return shared;
        }
        // Boxed: the future of every request contains this one, which is some kilobytes large and hardly ever
        // runs.
        turn.finish(Box::pin(self.open()).await)
    }

    /// Sends no new requests on `connection`. Those in progress, and releases that must follow them, still
    /// use it.
    pub(super) fn retire(&self, connection: &Arc<Connection>) {
        self.shared.retire(|current| Arc::ptr_eq(current, connection));
    }

    /// Returns the error of a call that got no answer before its deadline: from the connection, if there was
    /// one, or while connecting.
    pub(super) fn silent(&self, is_connected: bool) -> BackendError {
        if is_connected { BackendError::NoAnswer } else { self.unreachable(SILENT) }
    }

    async fn open(&self) -> Result<Arc<Connection>, BackendError> {
        let stream = self.runtime.connect(&self.address).await.map_err(|error| self.unreachable(error))?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let (pipe, driver) = MultiplexedConnection::new_with_config(&self.info, stream, config)
            .await
            .map_err(|error| self.no_login(error))?;
        let (closed, is_digest_only) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        let (_close, dropped) = oneshot::channel::<()>();
        let ended = Arc::clone(&closed);
        // Boxed before it is moved: it is some kilobytes large.
        let driver = Box::pin(driver);
        self.runtime.spawn(async move {
            select(driver, dropped).await;
            ended.store(true, Ordering::Release);
        });
        let (known_scripts, commands) = (AtomicU32::new(0), Commands::default());
        Ok(Arc::new(Connection { pipe, closed, known_scripts, is_digest_only, commands, _close }))
    }

    fn unreachable(&self, reason: impl ToString) -> BackendError {
        BackendError::Unreachable { address: self.address.to_string(), reason: reason.to_string() }
    }

    fn no_login(&self, error: RedisError) -> BackendError {
        if error.kind() == ErrorKind::AuthenticationFailed {
            return BackendError::Refused { message: error.to_string(), passing: false };
        }
        self.unreachable(error)
    }
}

impl Connection {
    /// Returns whether the stream is open, as far as this side knows.
    pub(super) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Acquire)
    }

    /// Treats the connection as closed: it did not answer in time.
    pub(super) fn mark_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Returns whether the server has run the script for this connection.
    pub(super) fn knows(&self, script: &Script) -> bool {
        self.known_scripts.load(Ordering::Relaxed) & script.bit() != 0
    }

    /// Notes that the server has run the script.
    pub(super) fn learn(&self, script: &Script) {
        self.known_scripts.fetch_or(script.bit(), Ordering::Relaxed);
    }

    /// Returns whether the user may run scripts by their digest only.
    pub(super) fn is_digest_only(&self) -> bool {
        self.is_digest_only.load(Ordering::Relaxed)
    }

    /// Notes that the server refuses the texts of scripts to this user.
    pub(super) fn note_digest_only(&self) {
        self.is_digest_only.store(true, Ordering::Relaxed);
    }

    /// Returns the commands of the server for release and renewal, as far as they are known.
    pub(super) fn commands(&self) -> &Commands {
        &self.commands
    }

    /// Notes that the server does not know the script any more.
    pub(super) fn forget(&self, script: &Script) {
        self.known_scripts.fetch_and(!script.bit(), Ordering::Relaxed);
    }

    /// Sends a command; returns its answer, which may be an error of the server's.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        self.pipe.clone().send_packed_command(command).await
    }
}
