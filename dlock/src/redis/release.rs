//! Sends the release of one acquisition.

use std::sync::Arc;

use dlock_runtime::{Instant, Runtime, probes, reached, sometimes};
use redis::{RedisError, Value};

use super::client::Client;
use super::connection::Connection;
use super::eval;
use super::node::{Node, Sent};
use super::parts::Parts;
use crate::backend::Claim;
use crate::error::BackendError;

/// Releases, together with others if there are many.
pub(super) async fn release<R: Runtime>(
    Client { node, releases, .. }: &Client<R>,
    claim: &Claim,
    deadline: Instant,
) -> Result<(Sent, Value), BackendError> {
    let send = |connection| async move { releases.execute(node.runtime(), claim, &connection).await };
    node.exchange(None, deadline, |_| (), send).await
}

/// Releases on `connection`, behind the requests that were sent or are about to be sent there.
pub(super) async fn follow<R: Runtime>(
    Client { node, acquires, releases, .. }: &Client<R>,
    connection: &Arc<Connection>,
    claim: &Claim,
    deadline: Instant,
) -> Result<(Sent, Value), BackendError> {
    let send = |connection: Arc<Connection>| async move {
        acquires.handed_over().await;
        releases.operation().one_by_text(claim, &connection).await
    };
    follow_by(node, connection, deadline, send).await
}

/// Releases by a script of its own on `followed`, behind the requests that were sent there, or on the shared
/// connection.
pub(super) async fn release_by<R: Runtime>(
    Client { node, .. }: &Client<R>,
    followed: Option<&Arc<Connection>>,
    parts: &Parts<'_>,
    deadline: Instant,
) -> Result<(Sent, Value), BackendError> {
    let Some(connection) = followed else { return node.eval(parts.call(), deadline, |_| ()).await };
    let send = |connection: Arc<Connection>| async move { eval::eval_text(&connection, parts.call()).await };
    follow_by(node, connection, deadline, send).await
}

/// Sends a release by `send` on `connection`, which the next try does not use if this one fails.
async fn follow_by<R: Runtime, F: Future<Output = Result<Value, RedisError>>>(
    node: &Node<R>,
    connection: &Arc<Connection>,
    deadline: Instant,
    send: impl FnOnce(Arc<Connection>) -> F,
) -> Result<(Sent, Value), BackendError> {
    reached!(node.runtime(), release_follows_request);
    let exchanged = node.exchange(Some(Arc::clone(connection)), deadline, |_| (), send).await;
    sometimes!(node.runtime(), followed_connection_failed, exchanged.is_err());
    if exchanged.is_err() {
        connection.mark_closed();
    }
    exchanged
}

probes! {
    /// A release was sent on the connection of an unanswered request, so that it follows it.
    reached release_follows_request;
    /// The connection on which a release followed a request failed: the next release may overtake it.
    sometimes followed_connection_failed;
}
