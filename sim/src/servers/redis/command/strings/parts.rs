//! Commands on parts of strings.

use std::sync::Arc;

use super::super::NOT_AN_INTEGER;
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Form, Text};

/// The longest string, in bytes (Redis' `proto-max-bulk-len`).
const STRING_BYTES_MAX: usize = 512 * 1024 * 1024;
const APPEND: Event = Event(Class::String, "append");
const SETRANGE: Event = Event(Class::String, "setrange");

pub(crate) fn append(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (key, tail) = (args.at(1), args.at(2));
    let Some(entry) = state.lookup(key) else {
        state.set(key, tail.into(), None);
        state.notify(APPEND, key);
        return Ok(Reply::count(tail.len()));
    };
    let (head, expires_at) = (entry.text()?, entry.expires_at);
    if head.len() + tail.len() > STRING_BYTES_MAX {
        return Err(Reply::error(TOO_LONG));
    }
    let value = [head, tail].concat();
    let length = value.len();
    state.set_text(key, Text { bytes: value.into(), form: Form::Raw }, expires_at);
    state.notify(APPEND, key);
    Ok(Reply::count(length))
}

pub(crate) fn strlen(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let value = state.lookup(args.at(1)).map(|entry| entry.text()).transpose()?;
    Ok(Reply::count(value.map_or(0, |value| value.len())))
}

/// GETRANGE and SUBSTR.
pub(crate) fn getrange(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let [start, end] = [2, 3].map(|at| parse_i64(args.at(at)).ok_or(Reply::error(NOT_AN_INTEGER)));
    let (start, end) = (start?, end?);
    let Some(value) = state.text(args.at(1))? else { return Ok(Reply::bulk("")) };
    // A string has fewer than 2^63 bytes.
    let length = value.len() as i64;
    if start < 0 && end < 0 && start > end {
        return Ok(Reply::bulk(""));
    }
    let absolute = |index: i64| if index < 0 { (length + index).max(0) } else { index };
    let (start, end) = (absolute(start), absolute(end).min(length - 1));
    if start > end || length == 0 {
        return Ok(Reply::bulk(""));
    }
    Ok(Reply::bulk(&value[start as usize..=end as usize]))
}

pub(crate) fn setrange(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (key, part) = (args.at(1), args.at(3));
    let offset = parse_i64(args.at(2)).ok_or(Reply::error(NOT_AN_INTEGER))?;
    let offset = usize::try_from(offset).map_err(|_| Reply::error("ERR offset is out of range"))?;
    let entry = state.lookup(key);
    let expires_at = entry.and_then(|entry| entry.expires_at);
    let former = entry.map(|entry| entry.text().cloned()).transpose()?.unwrap_or_else(Arc::default);
    if part.is_empty() {
        return Ok(Reply::count(former.len()));
    }
    let end = offset.saturating_add(part.len());
    if end > STRING_BYTES_MAX {
        return Err(Reply::error(TOO_LONG));
    }
    let mut value = former.to_vec();
    value.resize(former.len().max(end), 0);
    value[offset..end].copy_from_slice(part);
    let length = value.len();
    state.set_text(key, Text { bytes: value.into(), form: Form::Raw }, expires_at);
    state.notify(SETRANGE, key);
    Ok(Reply::count(length))
}

const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
