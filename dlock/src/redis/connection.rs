//! One connection for all locks, opened by whoever comes first and replaced when it fails.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::select;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisConnectionInfo, RedisError, Value};
use tokio::sync::{Mutex as Gate, oneshot};

use super::batch::Batches;
use crate::error::BackendError;
use crate::runtime::Runtime;

/// The way to one Redis server: at most one connection that takes new requests, and a queue of one who opens it.
pub(super) struct Link<R> {
    runtime: R,
    address: Box<str>,
    info: RedisConnectionInfo,
    state: Mutex<State>,
    /// Held while connecting: the others wait, and take what comes of it.
    gate: Gate<()>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Counts the finished attempts to connect.
    attempts: u64,
    /// What the last one failed with.
    failure: Option<BackendError>,
}

/// A connection that answers requests in the order in which they were sent.
pub(super) struct Connection {
    pipe: MultiplexedConnection,
    /// Set when the stream has ended: nothing sent on it has an effect any more, unless it has arrived already.
    closed: Arc<AtomicBool>,
    /// A bit for each script that the server has run for this connection, and so knows.
    scripts: AtomicU32,
    /// Its acquires.
    batches: Batches,
    /// Dropped with the last user of the connection, it ends the driver, and with it the stream.
    _close: oneshot::Sender<()>,
}

impl<R: Runtime> Link<R> {
    pub(super) fn new(runtime: R, address: &str, info: RedisConnectionInfo) -> Self {
        // The name of the client library is worth no round trip before the first lock.
        let info = info.set_skip_set_lib_name();
        Self { runtime, address: address.into(), info, state: Mutex::default(), gate: Gate::new(()) }
    }

    pub(super) fn runtime(&self) -> &R {
        &self.runtime
    }

    /// The open connection, or a new one. Waits for as long as the network keeps silent.
    ///
    /// # Errors
    ///
    /// [`BackendError::Unreachable`], of this caller's attempt or of the one that it waited for.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, BackendError> {
        let attempts = {
            let state = self.state();
            if let Some(connection) = state.usable() {
                return Ok(connection);
            }
            state.attempts
        };
        let _gate = self.gate.lock().await;
        {
            let state = self.state();
            if let Some(connection) = state.usable() {
                return Ok(connection);
            }
            if let Some(failure) = state.failure.as_ref().filter(|_| state.attempts != attempts) {
                return Err(failure.clone());
            }
        }
        // Boxed: every request's future holds this one, which is some kilobytes large and hardly ever runs.
        let opened = Box::pin(self.open()).await;
        let mut state = self.state();
        state.attempts += 1;
        state.connection = opened.as_ref().ok().cloned();
        state.failure = opened.as_ref().err().cloned();
        opened
    }

    /// Takes no new requests on `connection`. Those under way, and whoever must follow them, still may use it.
    pub(super) fn retire(&self, connection: &Arc<Connection>) {
        let mut state = self.state();
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
        }
    }

    /// What it means that nothing was heard in time: from the connection, if there was one, or of one.
    pub(super) fn silent(&self, connected: bool) -> BackendError {
        if connected { BackendError::NoAnswer } else { self.unreachable("no connection in time") }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// How to log in.
    pub(super) fn info(&self) -> &RedisConnectionInfo {
        &self.info
    }

    async fn open(&self) -> Result<Arc<Connection>, BackendError> {
        let stream = self.runtime.connect(&self.address).await.map_err(|error| self.unreachable(error))?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let (pipe, driver) = MultiplexedConnection::new_with_config(&self.info, stream, config)
            .await
            .map_err(|error| self.no_login(error))?;
        let closed = Arc::new(AtomicBool::new(false));
        let (_close, dropped) = oneshot::channel::<()>();
        let ended = Arc::clone(&closed);
        // Boxed before it is handed on: it is some kilobytes large.
        let driver = Box::pin(driver);
        self.runtime.spawn(async move {
            select(driver, dropped).await;
            ended.store(true, Ordering::Release);
        });
        Ok(Arc::new(Connection {
            pipe,
            closed,
            scripts: AtomicU32::new(0),
            batches: Batches::default(),
            _close,
        }))
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn usable(&self) -> Option<Arc<Connection>> {
        self.connection.as_ref().filter(|connection| connection.is_open()).cloned()
    }
}

impl Connection {
    /// Whether the stream is open, as far as this side can know.
    pub(super) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Acquire)
    }

    /// Counts the connection as closed: it did not answer in time, and nobody shall wait for it again.
    pub(super) fn give_up(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether the server has run the script of that number for this connection.
    pub(super) fn has_run(&self, script: u32) -> bool {
        self.scripts.load(Ordering::Relaxed) & (1 << script) != 0
    }

    /// The server has run the script of that number.
    pub(super) fn set_run(&self, script: u32) {
        self.scripts.fetch_or(1 << script, Ordering::Relaxed);
    }

    /// The server does not know the script of that number any more.
    pub(super) fn forget_run(&self, script: u32) {
        self.scripts.fetch_and(!(1 << script), Ordering::Relaxed);
    }

    /// The acquires that share calls on this connection.
    pub(super) fn batches(&self) -> &Batches {
        &self.batches
    }

    /// Sends a command and waits for its answer, an error of the server's included.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        self.pipe.clone().send_packed_command(command).await
    }
}
