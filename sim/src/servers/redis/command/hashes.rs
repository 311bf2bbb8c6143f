//! Commands on hashes. Source: `t_hash.c` of Redis 7.0.

use std::sync::Arc;

use super::ranges::{parse_integer, parse_within};
use super::{OUT_OF_RANGE, SYNTAX_ERROR, choices, words, wrong_arity};
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::number::{Extended, NOT_A_FLOAT, parse_i64, strtod, with_i64};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Hash, Pair};

const HSET: Event = Event(Class::Hash, "hset");
const HDEL: Event = Event(Class::Hash, "hdel");
const HINCRBY: Event = Event(Class::Hash, "hincrby");
const HINCRBYFLOAT: Event = Event(Class::Hash, "hincrbyfloat");

pub(super) fn hset(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(set_fields(state, args, "hset")?))
}

pub(super) fn hmset(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    set_fields(state, args, "hmset")?;
    Ok(Reply::OK)
}

/// Sets fields. Returns the number of new ones.
fn set_fields(state: &mut State, args: Args<'_>, name: &str) -> Result<usize, Reply> {
    if !args.len().is_multiple_of(2) {
        return Err(wrong_arity(name));
    }
    let hash: &mut Hash = state.edit_or_create(args.at(1))?;
    let pairs = (2..args.len()).step_by(2);
    let created = pairs.filter(|at| hash.set(args.at(*at), args.at(at + 1))).count();
    state.changed(args.at(1), HSET, &words(args));
    Ok(created)
}

pub(super) fn hsetnx(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let hash: Option<&Hash> = state.read(args.at(1))?;
    if hash.is_some_and(|hash| hash.get(args.at(2)).is_some()) {
        return Ok(Reply::Integer(0));
    }
    state.edit_or_create::<Hash>(args.at(1))?.set(args.at(2), args.at(3));
    state.changed(args.at(1), HSET, &words(args));
    Ok(Reply::Integer(1))
}

pub(super) fn hget(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let hash: Option<&Hash> = state.read(args.at(1))?;
    Ok(bulk(hash.and_then(|hash| hash.get(args.at(2)))))
}

pub(super) fn hmget(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let hash: Option<&Hash> = state.read(args.at(1))?;
    let value = |field| bulk(hash.and_then(|hash| hash.get(field)));
    Ok(Reply::Array(args.skip(2).iter().map(value).collect()))
}

pub(super) fn hdel(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let Some(hash) = state.edit::<Hash>(args.at(1))? else { return Ok(Reply::Integer(0)) };
    let removed = args.skip(2).iter().filter(|field| hash.remove(field)).count();
    if removed > 0 {
        state.changed(args.at(1), HDEL, &words(args));
    }
    Ok(Reply::count(removed))
}

pub(super) fn hexists(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let hash: Option<&Hash> = state.read(args.at(1))?;
    Ok(Reply::Integer(hash.is_some_and(|hash| hash.get(args.at(2)).is_some()).into()))
}

pub(super) fn hlen(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(state.read(args.at(1))?.map_or(0, Hash::len)))
}

pub(super) fn hstrlen(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let hash: Option<&Hash> = state.read(args.at(1))?;
    Ok(Reply::count(hash.and_then(|hash| hash.get(args.at(2))).map_or(0, |value| value.len())))
}

pub(super) fn hgetall(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let pairs = pairs(state, args)?.into_iter();
    Ok(Reply::Pairs(pairs.map(|(field, value)| (Reply::Bulk(field), Reply::Bulk(value))).collect()))
}

pub(super) fn hkeys(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::texts(pairs(state, args)?.into_iter().map(|(field, _)| field)))
}

pub(super) fn hvals(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::texts(pairs(state, args)?.into_iter().map(|(_, value)| value)))
}

pub(super) fn hincrby(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let by = parse_integer(args.at(3))?;
    let current = match state.read::<Hash>(args.at(1))?.and_then(|hash| hash.get(args.at(2))) {
        Some(value) => parse_i64(value).ok_or(Reply::error("ERR hash value is not an integer"))?,
        None => 0,
    };
    let sum = current.checked_add(by).ok_or(Reply::error(super::OVERFLOW))?;
    let hash: &mut Hash = state.edit_or_create(args.at(1))?;
    with_i64(sum, |text| hash.set(args.at(2), text));
    state.changed(args.at(1), HINCRBY, &words(args));
    Ok(Reply::Integer(sum))
}

/// HINCRBYFLOAT: repeated as HSET, so that replicas need not calculate.
pub(super) fn hincrbyfloat(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (number, length) = strtod(args.at(3));
    if number.is_infinite() && length == args.at(3).len() && Extended::parse(args.at(3)).is_none() {
        return Err(Reply::error("ERR value is NaN or Infinity"));
    }
    let by = Extended::parse(args.at(3)).ok_or(Reply::error(NOT_A_FLOAT))?;
    let current = match state.read::<Hash>(args.at(1))?.and_then(|hash| hash.get(args.at(2))) {
        Some(value) => Extended::parse(value).ok_or(Reply::error("ERR hash value is not a float"))?,
        None => Extended::ZERO,
    };
    let sum = current.add(by).ok_or(Reply::error("ERR increment would produce NaN or Infinity"))?.to_string();
    state.edit_or_create::<Hash>(args.at(1))?.set(args.at(2), sum.as_bytes());
    state.changed(args.at(1), HINCRBYFLOAT, &[b"HSET", args.at(1), args.at(2), sum.as_bytes()]);
    Ok(Reply::bulk(sum))
}

pub(super) fn hrandfield(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if args.len() == 2 {
        let pairs = pairs(state, args)?;
        if pairs.is_empty() {
            return Ok(Reply::Nil);
        }
        let at = state.choices.below(pairs.len());
        return Ok(Reply::Bulk(pairs[at].0.clone()));
    }
    let count = parse_within(args.at(2), -i64::MAX..=i64::MAX, None)?;
    let with_values = args.len() == 4 && args.at(3).eq_ignore_ascii_case(b"withvalues");
    if args.len() > 4 || (args.len() == 4 && !with_values) {
        return Err(Reply::error(SYNTAX_ERROR));
    }
    if with_values && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(Reply::error(OUT_OF_RANGE));
    }
    let pairs = pairs(state, args)?;
    let chosen = choices::choose(&mut state.choices, pairs.len(), count).into_iter().map(|at| &pairs[at]);
    if with_values {
        let both = chosen.map(|(field, value)| (Reply::Bulk(field.clone()), Reply::Bulk(value.clone())));
        return Ok(Reply::Nested(both.collect()));
    }
    Ok(Reply::texts(chosen.map(|(field, _)| field.clone())))
}

fn pairs(state: &mut State, args: Args<'_>) -> Result<Vec<Pair>, Reply> {
    Ok(state.read(args.at(1))?.map_or_else(Vec::new, Hash::pairs))
}

fn bulk(value: Option<&Arc<[u8]>>) -> Reply {
    value.map_or(Reply::Nil, |value| Reply::Bulk(value.clone()))
}
