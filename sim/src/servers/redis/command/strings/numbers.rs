//! Counters.

use super::super::{NOT_AN_INTEGER, OVERFLOW};
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::number::{Extended, NOT_A_FLOAT, parse_i64};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Form, Text};

pub(crate) fn incr(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    add(state, args.at(1), 1)
}

pub(crate) fn decr(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    add(state, args.at(1), -1)
}

pub(crate) fn incrby(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let by = parse_i64(args.at(2)).ok_or(Reply::error(NOT_AN_INTEGER))?;
    add(state, args.at(1), by)
}

pub(crate) fn decrby(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let by = parse_i64(args.at(2)).ok_or(Reply::error(NOT_AN_INTEGER))?;
    let by = by.checked_neg().ok_or(Reply::error("ERR decrement would overflow"))?;
    add(state, args.at(1), by)
}

fn add(state: &mut State, key: &[u8], by: i64) -> Result<Reply, Reply> {
    let current = match state.lookup(key) {
        None => Some(0),
        Some(entry) => parse_i64(entry.text()?),
    };
    let current = current.ok_or(Reply::error(NOT_AN_INTEGER))?;
    let value = current.checked_add(by).ok_or(Reply::error(OVERFLOW))?;
    state.count(key, value, by);
    state.notify(Event(Class::String, "incrby"), key);
    Ok(Reply::Integer(value))
}

pub(crate) fn incrbyfloat(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let key = args.at(1);
    let entry = state.lookup(key);
    let expires_at = entry.and_then(|entry| entry.expires_at);
    let current = match entry {
        None => Extended::ZERO,
        Some(entry) => Extended::parse(entry.text()?).ok_or(Reply::error(NOT_A_FLOAT))?,
    };
    let by = Extended::parse(args.at(2)).ok_or(Reply::error(NOT_A_FLOAT))?;
    let sum = current.add(by).ok_or(Reply::error("ERR increment would produce NaN or Infinity"))?;
    let bytes: std::sync::Arc<[u8]> = sum.to_string().into_bytes().into();
    state.set_text(key, Text { bytes: bytes.clone(), form: Form::Characters }, expires_at);
    state.notify(Event(Class::String, "incrbyfloat"), key);
    Ok(Reply::Bulk(bytes))
}
