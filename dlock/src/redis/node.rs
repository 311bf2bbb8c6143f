//! One Redis server that runs scripts.

use std::pin::pin;
use std::sync::Arc;

use dlock_runtime::{Instant, Runtime, probes, sometimes, timeout_at};
use redis::{RedisConnectionInfo, RedisError, Value};

use super::connection::{Connection, Connector};
use super::native;
use super::reply;
use super::script::Call;
use crate::error::BackendError;

/// A Redis server, reached by one connection at a time.
pub(crate) struct Node<R>(Connector<R>);

/// A request that is about to be sent, or that was.
#[derive(Clone)]
pub(super) struct Sent {
    /// A reading of the clock from before it was sent.
    pub(super) at: Instant,
    pub(super) connection: Arc<Connection>,
}

impl<R: Runtime> Node<R> {
    pub(super) fn new(runtime: R, address: &str, info: RedisConnectionInfo) -> Self {
        Self(Connector::new(runtime, address, info))
    }

    pub(super) fn runtime(&self) -> &R {
        self.0.runtime()
    }

    pub(super) fn address(&self) -> &str {
        self.0.address()
    }

    /// Returns the login data.
    pub(super) fn info(&self) -> &RedisConnectionInfo {
        self.0.info()
    }

    /// Connects, logs in and waits for an answer, whether the user may send this command or not.
    pub(super) async fn greet(&self, deadline: Instant) -> Result<(), BackendError> {
        let send = |connection: Arc<Connection>| async move { connection.send(&redis::cmd("PING")).await };
        let (_, value) = self.exchange(None, deadline, |_| (), send).await?;
        reply::greeting(&value)
    }

    /// Runs a script with its keys and arguments, or the server's own command that does the same, on the
    /// shared connection, as [`Node::exchange`] does.
    pub(super) async fn eval(
        &self,
        call: Call<'_>,
        deadline: Instant,
        before_send: impl FnOnce(&Sent),
    ) -> Result<(Sent, Value), BackendError> {
        let send = |connection: Arc<Connection>| async move { native::run(&connection, call).await };
        self.exchange(None, deadline, before_send, send).await
    }

    /// Sends a request by `send` on `connection`, or on the shared one; calls `before_send` first. Returns
    /// the request with its reply. A connection that fails, stays silent until `deadline` or leads to a
    /// replica takes no further requests.
    pub(super) async fn exchange<S, F>(
        &self,
        connection: Option<Arc<Connection>>,
        deadline: Instant,
        before_send: impl FnOnce(&Sent),
        send: S,
    ) -> Result<(Sent, Value), BackendError>
    where
        S: FnOnce(Arc<Connection>) -> F,
        F: Future<Output = Result<Value, RedisError>>,
    {
        let Self(connector) = self;
        let mut used = connection;
        let exchanged = {
            // Pinned where it is made: moving it costs as much as sending the command.
            let exchange = pin!(async {
                let connection = match &used {
                    Some(connection) => Arc::clone(connection),
                    None => Arc::clone(used.insert(connector.connection().await?)),
                };
                let sent = Sent { at: connector.runtime().now(), connection };
                before_send(&sent);
                let value = send(Arc::clone(&sent.connection)).await.map_err(disconnected)?;
                Ok((sent, value))
            });
            timeout_at(connector.runtime(), deadline, exchange).await
        };
        sometimes!(connector.runtime(), request_unanswered, exchanged.is_err() && used.is_some());
        let exchanged = exchanged.unwrap_or_else(|_| Err(connector.silent(used.is_some())));
        let is_usable = exchanged.as_ref().is_ok_and(|(_, value)| !reply::is_read_only(value));
        if let (Some(used), false) = (&used, is_usable) {
            connector.retire(used);
        }
        exchanged
    }
}

fn disconnected(error: RedisError) -> BackendError {
    BackendError::Disconnected { reason: error.to_string() }
}

probes! {
    /// A request was sent, and no answer came before the deadline.
    sometimes request_unanswered;
}
