//! Between Lua's values and Redis' replies. Source: `script_lua.c` of Redis 7.0.

use std::sync::Arc;

use mlua::{Lua, LuaString, Table, Value};

use super::Digest;
use crate::servers::redis::number::format_f64;
use crate::servers::redis::reply::Reply;

/// Tables inside tables that a reply may have; a table that holds itself ends here.
const DEPTH_MAX: usize = 1000;

/// The reply that a script's return value stands for.
pub(super) fn reply(value: &Value) -> Reply {
    nested_reply(value, 0)
}

/// The reply to a script that failed: its error, its name and the line.
pub(super) fn failure(failure: &Value, script: &Digest) -> Reply {
    let table = failure.as_table();
    let mut text = match table {
        Some(table) => field(table, "err").unwrap_or_else(|| b"ERR unknown error".to_vec()),
        // The handler that makes a table of it failed itself.
        None => [b"ERR ", failure.to_string().unwrap_or_default().as_bytes()].concat(),
    };
    text.extend_from_slice(b" script: ");
    text.extend_from_slice(script);
    if let Some(line) = table.and_then(|table| table.raw_get::<Option<i64>>("line").ok().flatten()) {
        text.extend_from_slice(format!(", on @user_script:{line}.").as_bytes());
    }
    Reply::error_text(text)
}

/// The reply when the interpreter itself failed, short of memory for instance.
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

/// What `redis.pcall` returns for an error reply.
pub(super) fn error_table(lua: &Lua, text: &[u8]) -> mlua::Result<Value> {
    let table = lua.create_table_from([("err", lua.create_string(text)?)])?;
    table.raw_set("ignore_error_stats_update", true)?;
    Ok(Value::Table(table))
}

/// Makes the tables that stand for status replies, `{ok = 'OK'}`. Scripts that set keys see one a call, so the strings
/// in it are made once.
#[derive(Clone, Debug)]
pub(super) struct StatusTable {
    field: LuaString,
    ok: LuaString,
}

impl StatusTable {
    pub(super) fn new(lua: &Lua) -> mlua::Result<Self> {
        Ok(Self { field: lua.create_string("ok")?, ok: lua.create_string("OK")? })
    }

    /// What `redis.call` returns for `reply`.
    pub(super) fn value(&self, lua: &Lua, reply: &Reply) -> mlua::Result<Value> {
        let Reply::Status(text) = reply else { return value(lua, reply) };
        let table = lua.create_table_with_capacity(0, 1)?;
        match &**text {
            b"OK" => table.raw_set(&self.field, &self.ok)?,
            text => table.raw_set(&self.field, lua.create_string(text)?)?,
        }
        Ok(Value::Table(table))
    }
}

fn nested_reply(value: &Value, depth: usize) -> Reply {
    match value {
        Value::String(text) => Reply::Bulk(Arc::from(&*text.as_bytes())),
        Value::Integer(number) => Reply::Integer(*number),
        Value::Number(number) => Reply::Integer(truncate(*number)),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Table(table) => table_reply(table, depth),
        _ => Reply::Nil,
    }
}

fn table_reply(table: &Table, depth: usize) -> Reply {
    if depth >= DEPTH_MAX {
        return Reply::error("ERR reached lua stack limit");
    }
    if let Some(text) = field(table, "err") {
        return Reply::error_text(text);
    }
    if let Some(text) = field(table, "ok") {
        return Reply::Status(text.into());
    }
    if let Ok(Value::Number(number)) = table.raw_get("double") {
        return Reply::bulk(format_f64(number));
    }
    let items = (1..).map_while(|index| match table.raw_get(index) {
        Ok(Value::Nil) | Err(_) => None,
        Ok(item) => Some(nested_reply(&item, depth + 1)),
    });
    Reply::Array(items.collect())
}

/// A field that holds a text.
fn field(table: &Table, name: &str) -> Option<Vec<u8>> {
    match table.raw_get(name) {
        Ok(Value::String(text)) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

/// A number as C converts it on the machines that Redis runs on: towards zero, and the least one if it does not fit.
fn truncate(number: f64) -> i64 {
    // 2^63 is the first number above the range.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
    if fits { number as i64 } else { i64::MIN }
}

fn value(lua: &Lua, reply: &Reply) -> mlua::Result<Value> {
    Ok(match reply {
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) => Value::String(lua.create_string(bytes)?),
        Reply::Integer(number) => Value::Integer(*number),
        Reply::Nil | Reply::NilArray | Reply::Silence => Value::Boolean(false),
        Reply::Status(text) => Value::Table(lua.create_table_from([("ok", lua.create_string(text)?)])?),
        Reply::Error(text) => Value::Table(lua.create_table_from([("err", lua.create_string(text)?)])?),
        Reply::Array(items) => {
            let items = items.iter().map(|item| value(lua, item)).collect::<mlua::Result<Vec<_>>>()?;
            Value::Table(lua.create_sequence_from(items)?)
        }
        // Scripts speak RESP2 with the server, whatever their callers speak.
        Reply::Map(fields) => {
            let mut items = Vec::with_capacity(2 * fields.len());
            for (name, field) in fields {
                items.push(Value::String(lua.create_string(name)?));
                items.push(value(lua, field)?);
            }
            Value::Table(lua.create_sequence_from(items)?)
        }
    })
}
