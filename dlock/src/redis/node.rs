//! One Redis server that runs scripts.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use dlock_runtime::{Instant, Runtime, probes, sometimes, timeout_at};
use redis::{RedisConnectionInfo, RedisError, Value};

use super::connection::{Connection, Connector};
use super::reply::{self, Grant};
use super::script::Call;
use crate::error::BackendError;

/// A Redis server, reached by one connection at a time.
pub(crate) struct Node<R>(Connector<R>);

/// An answer, with its connection and a reading of the clock from before the request was sent.
pub(crate) struct Reply {
    pub(super) connection: Arc<Connection>,
    pub(super) sent_at: Instant,
    value: Value,
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

    /// Runs a script with its keys and arguments on the shared connection; calls `before_send` first.
    pub(crate) async fn eval(
        &self,
        call: Call<'_>,
        deadline: Instant,
        before_send: impl FnOnce(&Arc<Connection>, Instant),
    ) -> Result<Reply, BackendError> {
        let send = |connection: Arc<Connection>| async move { eval(&connection, call).await };
        self.exchange(None, deadline, before_send, send).await
    }

    /// Sends requests by `send` on `connection`, or on the shared one; calls `before_send` first. A
    /// connection that fails, or stays silent until `deadline`, takes no further requests.
    pub(super) async fn exchange<S, F>(
        &self,
        connection: Option<Arc<Connection>>,
        deadline: Instant,
        before_send: impl FnOnce(&Arc<Connection>, Instant),
        send: S,
    ) -> Result<Reply, BackendError>
    where
        S: FnOnce(Arc<Connection>) -> F,
        F: Future<Output = Result<Value, RedisError>>,
    {
        let Self(connector) = self;
        let mut used = connection;
        let result = {
            // Pinned where it is made: moving it costs as much as sending the command.
            let exchange = pin!(async {
                let connection = match &used {
                    Some(connection) => Arc::clone(connection),
                    None => Arc::clone(used.insert(connector.connection().await?)),
                };
                let sent_at = connector.runtime().now();
                before_send(&connection, sent_at);
                let value = send(Arc::clone(&connection)).await.map_err(disconnected)?;
                Ok(Reply { connection, sent_at, value })
            });
            timeout_at(connector.runtime(), deadline, exchange).await
        };
        sometimes!(connector.runtime(), request_unanswered, result.is_err() && used.is_some());
        let is_read_only = |reply: &Reply| reply::is_read_only(&reply.value);
        let result = result.unwrap_or_else(|_| Err(connector.silent(used.is_some())));
        if result.as_ref().map_or(true, is_read_only)
            && let Some(used) = &used
        {
            connector.retire(used);
        }
        result
    }
}

impl Reply {
    /// Reads the answer of a script that grants.
    pub(super) fn grant(&self) -> Result<Grant, BackendError> {
        reply::grant(&self.value)
    }

    /// Reads the answer of a script that changes a lease only for its owner; returns true if it did.
    pub(crate) fn is_done(&self) -> Result<bool, BackendError> {
        reply::is_done(&self.value)
    }
}

/// Runs a script by its digest, or by its text if the server does not know it; it does from then on.
///
/// The first call on a connection sends the text: finding out whether the server knows the script takes a
/// round trip, so the very first call would wait for two.
pub(super) async fn eval(connection: &Connection, call: Call<'_>) -> Result<Value, RedisError> {
    if connection.knows(call.script) {
        let answer = connection.send(&call.by_digest()).await?;
        if !reply::is_unknown_script(&answer) {
            return Ok(answer);
        }
    }
    eval_text(connection, call).await
}

/// Runs a script by its text. On a connection that loses answers, the answer that a digest is unknown may get
/// lost, too.
pub(super) async fn eval_text(connection: &Connection, call: Call<'_>) -> Result<Value, RedisError> {
    let answer = connection.send(&call.by_text()).await?;
    // A server that refuses to run a script may not have read it either.
    if !matches!(answer, Value::ServerError(_)) {
        connection.learn(call.script);
    }
    Ok(answer)
}

fn disconnected(error: RedisError) -> BackendError {
    BackendError::Disconnected { reason: error.to_string() }
}

probes! {
    /// A request was sent, and no answer came before the deadline.
    sometimes request_unanswered;
}
