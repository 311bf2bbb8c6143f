//! Commands on strings. Source: `t_string.c` of Redis 7.0; for conditions on values and for MSETEX that of
//! Redis 8.4 and of Valkey 9.1, and `db.c` of Redis 8.4 for DELEX.

mod conditions;
mod multiple;
mod numbers;
mod options;
mod parts;
mod subsequence;

use std::sync::Arc;

use self::conditions::Comparison;
use super::expiry::{MILLIS, SECONDS, Unit, end};
use super::wrong_arity;
use crate::servers::redis::events::{EXPIRE, SET};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::word::Word;

pub(super) use multiple::msetex;
pub(super) use numbers::{decr, decrby, incr, incrby, incrbyfloat};
pub(super) use options::{Options, OptionsOf, repeated};
pub(super) use parts::{append, getrange, setrange, strlen};
pub(super) use subsequence::lcs;

pub(super) fn get(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(bulk(state.text(args.at(1))?))
}

pub(super) fn set(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let options = Options::parse(args.skip(3), OptionsOf::Set(state.version))?;
    let expires_at = options.expires_at(state.now_ms(), "set")?;
    let key = args.at(1);
    state.set_reading(options.answers_former);
    let former = state.lookup(key);
    let shown = former.filter(|_| options.answers_former).map(|entry| entry.text().cloned()).transpose()?;
    let allowed = options.allow(former)?;
    let kept = former.and_then(|entry| entry.expires_at).filter(|_| options.keeps_expiry);
    let answer = match shown {
        Some(former) => Reply::Bulk(former),
        None if options.answers_former => Reply::Nil,
        _ if allowed => Reply::OK,
        _ => Reply::Nil,
    };
    if !allowed {
        return Ok(answer);
    }
    // Redis stores the value, which has expired.
    if state.is_valkey() && expires_at.is_some_and(|at| state.is_past(at)) {
        end(state, key);
    } else {
        state.set(key, args.at(2).into(), expires_at.or(kept));
        state.notify(SET, key);
        if expires_at.is_some() {
            state.notify(EXPIRE, key);
        }
    }
    Ok(answer)
}

/// DELEX of Redis 8.4. A missing key is none even of an unknown condition.
pub(super) fn delex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (key, version) = (args.at(1), state.version);
    match args.len() {
        2 => return Ok(Reply::count(usize::from(state.delete(key)))),
        4 => {}
        _ => return Err(wrong_arity("delex")),
    }
    let Some(entry) = state.lookup(key) else { return Ok(Reply::Integer(0)) };
    if entry.text().is_err() {
        return Err(Reply::error("ERR Key should be of string type if conditions are specified"));
    }
    let Some(condition) = Comparison::of(version, Word::of(args.at(2)), args.at(3)) else {
        return Err(Reply::error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"));
    };
    let is_met = condition.holds(Some(entry))?;
    Ok(Reply::count(usize::from(is_met && state.delete(key))))
}

/// DIGEST of Redis 8.4.
pub(super) fn digest(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let value = state.text(args.at(1))?;
    Ok(bulk(value.map(|value| conditions::digest(&value).into_bytes().into())))
}

/// DELIFEQ of Valkey 9.
pub(super) fn delifeq(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let is_equal = state.text(args.at(1))?.is_some_and(|value| *value == *args.at(2));
    Ok(Reply::count(usize::from(is_equal && state.delete(args.at(1)))))
}

pub(super) fn setnx(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if state.lookup(args.at(1)).is_some() {
        return Ok(Reply::Integer(0));
    }
    state.set(args.at(1), args.at(2).into(), None);
    state.notify(SET, args.at(1));
    Ok(Reply::Integer(1))
}

pub(super) fn setex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    set_until(state, args, SECONDS, "setex")
}

pub(super) fn psetex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    set_until(state, args, MILLIS, "psetex")
}

pub(super) fn getset(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let former = state.reading(|state| state.text(args.at(1)))?;
    state.set(args.at(1), args.at(2).into(), None);
    state.notify(SET, args.at(1));
    Ok(bulk(former))
}

pub(super) fn getdel(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let former = state.reading(|state| state.text(args.at(1)))?;
    state.delete(args.at(1));
    Ok(bulk(former))
}

pub(super) fn getex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let options = Options::parse(args.skip(2), OptionsOf::GetEx)?;
    let (key, now_ms) = (args.at(1), state.now_ms());
    state.set_reading(true);
    let Some(entry) = state.lookup(key) else { return Ok(Reply::Nil) };
    let (value, had_expiry) = (entry.text()?.clone(), entry.expires_at.is_some());
    match options.expires_at(now_ms, "getex")? {
        Some(at) if at <= now_ms => end(state, key),
        Some(at) => state.expire_at(key, Some(at)),
        None if options.persists && had_expiry => state.expire_at(key, None),
        None => {}
    }
    Ok(Reply::Bulk(value))
}

pub(super) fn mget(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    // A key of another type counts as a missing one.
    let values = args.skip(1).iter().map(|key| bulk(state.text(key).ok().flatten()));
    Ok(Reply::Array(values.collect()))
}

pub(super) fn mset(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if args.len().is_multiple_of(2) {
        return Err(wrong_arity("mset"));
    }
    set_pairs(state, args);
    Ok(Reply::OK)
}

pub(super) fn msetnx(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if args.len().is_multiple_of(2) {
        return Err(wrong_arity("msetnx"));
    }
    if args.skip(1).iter().step_by(2).any(|key| state.lookup(key).is_some()) {
        return Ok(Reply::Integer(0));
    }
    set_pairs(state, args);
    Ok(Reply::Integer(1))
}

fn bulk(value: Option<Arc<[u8]>>) -> Reply {
    value.map_or(Reply::Nil, Reply::Bulk)
}

fn set_until(state: &mut State, args: Args<'_>, unit: Unit, command: &str) -> Result<Reply, Reply> {
    let at = unit.parse_positive(args.at(2), state.now_ms(), command)?;
    // The former value has expired or is overwritten.
    state.lookup(args.at(1));
    state.set(args.at(1), args.at(3).into(), Some(at));
    state.notify(SET, args.at(1));
    state.notify(EXPIRE, args.at(1));
    Ok(Reply::OK)
}

fn set_pairs(state: &mut State, args: Args<'_>) {
    for at in (1..args.len()).step_by(2) {
        state.lookup(args.at(at));
        state.set(args.at(at), args.at(at + 1).into(), None);
        state.notify(SET, args.at(at));
    }
}
