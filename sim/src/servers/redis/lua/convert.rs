//! Converts Lua's numbers and errors to Redis' replies. Source: `script_lua.c` of Redis 7.0.

use mlua::{Table, Value};

use super::Digest;
use crate::servers::redis::reply::Reply;

/// Returns the reply to a failed script: its error, its name and the line.
pub(super) fn failure(failure: &Value, script: &Digest) -> Reply {
    let table = failure.as_table();
    let mut text = match table {
        Some(table) => field(table, "err").unwrap_or_else(|| b"ERR unknown error".to_vec()),
        // The handler that turns errors into tables has failed itself.
        None => [b"ERR ", failure.to_string().unwrap_or_default().as_bytes()].concat(),
    };
    text.extend_from_slice(b" script: ");
    text.extend_from_slice(script);
    if let Some(line) = table.and_then(|table| table.raw_get::<Option<i64>>("line").ok().flatten()) {
        text.extend_from_slice(format!(", on @user_script:{line}.").as_bytes());
    }
    Reply::error_text(text)
}

/// Returns the reply to a failure of the interpreter itself, such as lack of memory.
pub(super) fn host_error(error: &mlua::Error, script: &Digest) -> Reply {
    Reply::error_text(format!("ERR {error} script: {}", String::from_utf8_lossy(script)))
}

pub(super) fn compile_error(error: &mlua::Error) -> Reply {
    let text = match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    };
    Reply::error_text(format!("ERR Error compiling script (new function): {text}"))
}

/// Returns the field `name`, if it is a string.
fn field(table: &Table, name: &str) -> Option<Vec<u8>> {
    match table.raw_get(name) {
        Ok(Value::String(text)) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

/// Converts a number as C does on the machines that Redis runs on: towards zero, and to the minimum if it
/// does not fit.
pub(super) fn truncate(number: f64) -> i64 {
    // 2^63 is the first number above the range.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
    if fits { number as i64 } else { i64::MIN }
}
