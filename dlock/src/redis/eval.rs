//! Running scripts on a connection.

use redis::{RedisError, Value};

use super::connection::Connection;
use super::reply;
use super::script::Call;

/// Runs a script by its digest, or by its text if the server does not know it; it does from then on.
///
/// The first call on a connection sends the text: finding out whether the server knows the script takes a
/// round trip, so the very first call would wait for two. A user who may not send a text runs by digest alone
/// what others have loaded.
pub(super) async fn eval(connection: &Connection, call: Call<'_>) -> Result<Value, RedisError> {
    if connection.knows(call.script) && !connection.is_digest_only() {
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
    if connection.is_digest_only() {
        return connection.send(&call.by_digest()).await;
    }
    let answer = connection.send(&call.by_text()).await?;
    if reply::forbids_text(&answer) {
        connection.note_digest_only();
        return connection.send(&call.by_digest()).await;
    }
    // A server that refuses to run a script may not have read it either.
    if !matches!(answer, Value::ServerError(_)) {
        connection.learn(call.script);
    }
    Ok(answer)
}
