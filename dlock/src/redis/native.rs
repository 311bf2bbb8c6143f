//! Release and renewal by the server's own commands: compare-and-delete, and compare-and-set.
//!
//! Sources: `t_string.c` and `db.c` of Redis 8.4 (`DELEX key IFEQ owner`, `SET key owner IFEQ owner PX ttl`),
//! `t_string.c` of Valkey 9 (`DELIFEQ key owner`, and the same `SET`). They do what `release.lua` and
//! `renew.lua` do: a key that is missing or has another owner stays as it is, and `SET` replaces the owner by
//! itself, so that only the TTL changes.
//!
//! # How a connection finds out
//!
//! The first release or renewal on a connection is a script. Its answer also tells which of the commands this
//! server has and this user may run, by `redis.acl_check_cmd`. Another connection may lead to another server,
//! and finds out for itself. This costs no round trip and needs no right. `COMMAND INFO` would take both, and
//! a trial of the command would take a second round trip on each connection to an older server, and leave an
//! entry in the access log of one that forbids it.
//!
//! After an error the script runs in place of the command, and from then on for the rest of the connection.
//! The server has executed nothing then. An error is expected where a right was withdrawn meanwhile, and from
//! a server that is out of memory: it refuses every `SET`, but not the `PEXPIRE` of the script.

use futures_util::future::join;
use redis::{Cmd, RedisError, Value, cmd};

use super::connection::Connection;
use super::eval;
use super::script::{Arg, Call, Own};

/// Runs the script of `call`, or the server's own command that does the same; returns the script's answer.
pub(super) async fn run(connection: &Connection, call: Call<'_>) -> Result<Value, RedisError> {
    let Some(own) = call.script.own() else { return eval::eval(connection, call).await };
    if let Some(answer) = run_own(own, connection, &call).await? {
        return Ok(answer);
    }
    if !connection.commands().are_unknown() {
        return eval::eval(connection, call).await;
    }
    let [owner, rest @ ..] = call.args else { return eval::eval(connection, call).await };
    let second = rest.first().copied().unwrap_or(Arg::Text(""));
    let asking = Call { args: &[*owner, second, Arg::Text("commands")], ..call };
    Ok(told(connection, eval::eval(connection, asking).await?))
}

/// Runs the server's own command. Returns `None` if the script must run: the server has no such command, or
/// has refused it.
async fn run_own(own: Own, connection: &Connection, call: &Call<'_>) -> Result<Option<Value>, RedisError> {
    let commands = connection.commands();
    let answer = match (own, call.keys, call.args) {
        (Own::CompareAndSet, [key], [owner, ttl]) => match commands.extend(*key, *owner, *ttl) {
            Some(command) => connection.send(&command).await?,
            None => return Ok(None),
        },
        (Own::CompareAndDelete, [key], [owner, channel @ ..]) => match commands.delete(*key, *owner) {
            Some(command) => delete(connection, &command, channel.first().copied()).await?,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(match answer {
        Value::Okay => Some(Value::Int(1)),
        Value::Nil => Some(Value::Int(0)),
        Value::Int(_) => Some(answer),
        _ => {
            commands.forget();
            None
        }
    })
}

/// Deletes by `command`, and notifies the waiters of `channel`. Both requests go out together, so that no
/// client can fail between them. The message is sent even if nothing was deleted: a waiter that wakes in vain
/// asks once, while one that is not woken waits for its backoff.
async fn delete(
    connection: &Connection,
    command: &Cmd,
    channel: Option<Arg<'_>>,
) -> Result<Value, RedisError> {
    let Some(channel) = channel else { return connection.send(command).await };
    let publish = cmd("PUBLISH").arg(channel).arg("").take();
    // In this order: each is queued when it is first polled. A refused message only delays waiters.
    let (deleted, _) = join(connection.send(command), connection.send(&publish)).await;
    deleted
}

/// Reads the answer of a script that was asked for the server's commands: notes them, and returns the rest.
fn told(connection: &Connection, answer: Value) -> Value {
    match answer {
        Value::Array(items) => match items.as_slice() {
            [Value::Int(number), Value::BulkString(name)] => {
                connection.commands().learn(name);
                Value::Int(*number)
            }
            _ => Value::Array(items),
        },
        Value::Int(_) => {
            connection.commands().forget();
            answer
        }
        // The server did not run the script: ask again.
        other => other,
    }
}

#[cfg(test)]
mod tests {
    /// Both scripts must tell the same about a server.
    #[test]
    fn release_and_renewal_ask_for_the_commands_alike() {
        let asking = |text: &'static str| {
            let code = text.lines().skip_while(|line| !line.starts_with("-- Returns the name of"));
            code.take_while(|line| !line.starts_with("if call")).collect::<Vec<_>>()
        };
        let release = asking(include_str!("release.lua"));
        assert!(release.len() > 10);
        assert_eq!(release, asking(include_str!("renew.lua")));
    }
}
