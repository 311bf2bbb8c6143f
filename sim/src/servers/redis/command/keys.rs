//! Commands on keys of any kind, and those that touch no key.

use super::ranges::parse_i32;
use super::scan::ScanOptions;
use super::{SYNTAX_ERROR, scan, wrong_arity};
use crate::servers::redis::glob;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::{DATABASES, State};
use crate::servers::redis::value::Value;

pub(super) fn del(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(args.skip(1).iter().filter(|key| state.delete(key)).count()))
}

pub(super) fn exists(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(args.skip(1).iter().filter(|key| state.peek(key).is_some()).count()))
}

/// TOUCH: as EXISTS, but it counts as a use.
pub(super) fn touch(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(args.skip(1).iter().filter(|key| state.lookup(key).is_some()).count()))
}

pub(super) fn kind(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::status(state.peek(args.at(1)).map_or("none", |entry| entry.value.kind())))
}

pub(super) fn dbsize(state: &mut State, _: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(state.keyspace().len()))
}

pub(super) fn flushdb(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    check_flush(args)?;
    state.flush();
    Ok(Reply::OK)
}

pub(super) fn flushall(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    check_flush(args)?;
    state.flush_all();
    Ok(Reply::OK)
}

fn check_flush(args: Args<'_>) -> Result<(), Reply> {
    match args.len() {
        1 => Ok(()),
        2 if args.at(1).eq_ignore_ascii_case(b"sync") || args.at(1).eq_ignore_ascii_case(b"async") => Ok(()),
        _ => Err(Reply::error(SYNTAX_ERROR)),
    }
}

pub(super) fn keys(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let pattern = args.at(1);
    Ok(Reply::Array(matching(state, |key, _| pattern == b"*" || glob::matches(pattern, key))))
}

/// RANDOMKEY: never returns an expired key.
pub(super) fn randomkey(state: &mut State, _: Args<'_>) -> Result<Reply, Reply> {
    let mut found = matching(state, |_, _| true);
    if found.is_empty() {
        return Ok(Reply::Nil);
    }
    let at = state.choices.below(found.len());
    Ok(found.swap_remove(at))
}

/// SCAN: returns all keys at once, whatever the cursor. The count is only a hint, in Redis too.
pub(super) fn scan(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let cursor = scan::parse_cursor(args.at(1))?;
    let options = ScanOptions::parse(args.skip(2), true)?;
    let found = matching(state, |key, value| cursor == 0 && options.takes(key) && options.takes_kind(value));
    Ok(scan::page(found))
}

pub(super) fn echo(_: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::bulk(args.at(1)))
}

pub(super) fn ping(_: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    match args.len() {
        1 => Ok(Reply::status("PONG")),
        2 => Ok(Reply::bulk(args.at(1))),
        _ => Err(wrong_arity("ping")),
    }
}

pub(super) fn select(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let number = database(parse_i32(args.at(1), None)?)?;
    state.select(number);
    Ok(Reply::OK)
}

/// Returns the database numbered `number`, if there is one.
pub(super) fn database(number: i32) -> Result<usize, Reply> {
    let number = usize::try_from(number).ok().filter(|number| *number < DATABASES);
    number.ok_or(Reply::error("ERR DB index is out of range"))
}

pub(super) fn time(state: &mut State, _: Args<'_>) -> Result<Reply, Reply> {
    let seconds = state.now_micros / 1_000_000;
    let micros = state.now_micros % 1_000_000;
    Ok(Reply::Array(vec![Reply::bulk(seconds.to_string()), Reply::bulk(micros.to_string())]))
}

/// Returns the names that `takes` accepts, without those that have expired.
fn matching(state: &mut State, takes: impl Fn(&[u8], &Value) -> bool) -> Vec<Reply> {
    let now_ms = state.now_ms();
    let live = state.keyspace().iter().filter(|(_, entry)| !entry.is_expired(now_ms));
    live.filter(|(key, entry)| takes(key, &entry.value)).map(|(key, _)| Reply::Bulk(key.clone())).collect()
}
