//! Commands on hashes. Source: `t_hash.c` of Redis 7.0; for expired fields those of Redis 8 and Valkey 9.1.

use std::sync::Arc;

use super::ranges::{parse_integer, parse_within};
use super::{OUT_OF_RANGE, SYNTAX_ERROR, choices, words, wrong_arity};
use crate::servers::redis::effects::decimal;
use crate::servers::redis::events::{Class, Event, HDEL, HEXPIRED, HSET};
use crate::servers::redis::number::{Extended, NOT_A_FLOAT, parse_i64, strtod};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Hash, Pair};
use crate::servers::redis::version::Version;

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
    let clock = state.overwrite_clock();
    let hash: &mut Hash = state.edit_or_create(args.at(1))?;
    let (mut created, mut overwritten) = (0, 0);
    for at in (2..args.len()).step_by(2) {
        let was_expired = hash.has_expired(args.at(at), clock);
        let is_new = hash.set(args.at(at), args.at(at + 1));
        created += usize::from(is_new || was_expired);
        overwritten += usize::from(was_expired);
    }
    if overwritten > 0 {
        state.notify(HEXPIRED, args.at(1));
    }
    state.changed(args.at(1), HSET, &words(args));
    Ok(created)
}

pub(super) fn hsetnx(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (key, field) = (args.at(1), args.at(2));
    let (clock, is_valkey) = (state.field_clock(), state.is_valkey());
    let hash = state.read_fields(key, [field])?;
    if hash.is_some_and(|hash| hash.live(field, clock).is_some()) {
        return Ok(Reply::Integer(0));
    }
    let had_expiries = hash.is_some_and(Hash::has_expiries);
    overwrite(state, key, field, args.at(3), None)?;
    let mut words = words(args);
    if is_valkey && had_expiries {
        // A replica can't tell whether the field has expired.
        words[0] = b"HSET";
    }
    state.changed(key, HSET, &words);
    Ok(Reply::Integer(1))
}

pub(super) fn hget(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(bulk(live(state, args)?))
}

pub(super) fn hmget(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let clock = state.field_clock();
    let hash = state.read_fields(args.at(1), args.skip(2).iter())?;
    let value = |field| bulk(hash.and_then(|hash| hash.live(field, clock)));
    Ok(Reply::Array(args.skip(2).iter().map(value).collect()))
}

pub(super) fn hdel(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let clock = state.hidden_clock();
    let Some(hash) = state.edit::<Hash>(args.at(1))? else { return Ok(Reply::Integer(0)) };
    let removes = |field: &&[u8]| !hash.has_expired(field, clock) && hash.remove(field);
    let removed = args.skip(2).iter().filter(removes).count();
    if removed > 0 {
        state.changed(args.at(1), HDEL, &words(args));
    }
    Ok(Reply::count(removed))
}

pub(super) fn hexists(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::Integer(live(state, args)?.is_some().into()))
}

/// HLEN: counts expired fields, too.
pub(super) fn hlen(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(state.read(args.at(1))?.map_or(0, Hash::len)))
}

pub(super) fn hstrlen(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(live(state, args)?.map_or(0, |value| value.len())))
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
    let former = Former::of(state, args)?;
    let current = match &former.value {
        Some(value) => parse_i64(value).ok_or(Reply::error("ERR hash value is not an integer"))?,
        None => 0,
    };
    let sum = current.checked_add(by).ok_or(Reply::error(super::OVERFLOW))?;
    let (key, field, digits) = (args.at(1), args.at(2), decimal(sum));
    overwrite(state, key, field, &digits, former.expires_at)?;
    if state.is_valkey() && former.has_expiries {
        // A replica can't tell whether the field has expired.
        changed_to(state, key, HINCRBY, field, &digits, former.expires_at);
    } else {
        state.changed(key, HINCRBY, &words(args));
    }
    Ok(Reply::Integer(sum))
}

/// HINCRBYFLOAT: repeated as the result, so that replicas need not calculate.
pub(super) fn hincrbyfloat(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (number, length) = strtod(args.at(3));
    if number.is_infinite() && length == args.at(3).len() && Extended::parse(args.at(3)).is_none() {
        return Err(Reply::error("ERR value is NaN or Infinity"));
    }
    let by = Extended::parse(args.at(3)).ok_or(Reply::error(NOT_A_FLOAT))?;
    let former = Former::of(state, args)?;
    let current = match &former.value {
        Some(value) => Extended::parse(value).ok_or(Reply::error("ERR hash value is not a float"))?,
        None => Extended::ZERO,
    };
    let sum = current.add(by).ok_or(Reply::error("ERR increment would produce NaN or Infinity"))?.to_string();
    let (key, field) = (args.at(1), args.at(2));
    overwrite(state, key, field, sum.as_bytes(), former.expires_at)?;
    if state.version == Version::Redis84 {
        let words: [&[u8]; 7] = [b"HSETEX", key, b"KEEPTTL", b"FIELDS", b"1", field, sum.as_bytes()];
        state.changed(key, HINCRBYFLOAT, &words);
    } else {
        changed_to(state, key, HINCRBYFLOAT, field, sum.as_bytes(), former.expires_at);
    }
    Ok(Reply::bulk(sum))
}

/// A field before HINCRBY or HINCRBYFLOAT.
struct Former {
    value: Option<Arc<[u8]>>,
    expires_at: Option<i64>,
    /// Some field of the hash has an expiry.
    has_expiries: bool,
}

impl Former {
    /// Returns the field that is the command's second argument.
    fn of(state: &mut State, args: Args<'_>) -> Result<Self, Reply> {
        let (field, clock) = (args.at(2), state.field_clock());
        let hash = state.read_fields(args.at(1), [field])?;
        let value = hash.and_then(|hash| hash.live(field, clock)).cloned();
        let expires_at = hash.filter(|_| value.is_some()).and_then(|hash| hash.expiry(field));
        Ok(Self { value, expires_at, has_expiries: hash.is_some_and(Hash::has_expiries) })
    }
}

/// Sets a field and its expiry. In Valkey that is an event if the former value has expired.
fn overwrite(
    state: &mut State,
    key: &[u8],
    field: &[u8],
    value: &[u8],
    expires_at: Option<i64>,
) -> Result<(), Reply> {
    let clock = state.overwrite_clock();
    let hash: &mut Hash = state.edit_or_create(key)?;
    let was_expired = hash.has_expired(field, clock);
    if expires_at.is_some() {
        hash.set_value(field, value);
    } else {
        hash.set(field, value);
    }
    if was_expired {
        state.notify(HEXPIRED, key);
    }
    Ok(())
}

/// Records that a field was changed to `value`, as a command that sets it with its expiry.
fn changed_to(
    state: &mut State,
    key: &[u8],
    event: Event,
    field: &[u8],
    value: &[u8],
    expires_at: Option<i64>,
) {
    match expires_at.map(decimal) {
        None => state.changed(key, event, &[b"HSET", key, field, value]),
        Some(at) => {
            let words: [&[u8]; 8] = [b"HSETEX", key, b"PXAT", &at, b"FIELDS", b"1", field, value];
            state.changed(key, event, &words);
        }
    }
}

pub(super) fn hrandfield(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    if args.len() == 2 {
        let pairs = all_pairs(state, args)?;
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
    let pairs = all_pairs(state, args)?;
    let chosen = choices::choose(&mut state.choices, pairs.len(), count).into_iter().map(|at| &pairs[at]);
    if with_values {
        let both = chosen.map(|(field, value)| (Reply::Bulk(field.clone()), Reply::Bulk(value.clone())));
        return Ok(Reply::Nested(both.collect()));
    }
    Ok(Reply::texts(chosen.map(|(field, _)| field.clone())))
}

fn pairs(state: &mut State, args: Args<'_>) -> Result<Vec<Pair>, Reply> {
    let clock = state.field_clock();
    Ok(state.read::<Hash>(args.at(1))?.map_or_else(Vec::new, |hash| hash.live_pairs(clock)))
}

/// As [`pairs`], but Redis removes the expired ones.
fn all_pairs(state: &mut State, args: Args<'_>) -> Result<Vec<Pair>, Reply> {
    let clock = state.field_clock();
    Ok(state.read_all_fields(args.at(1))?.map_or_else(Vec::new, |hash| hash.live_pairs(clock)))
}

/// Returns the value of the field that is the command's second argument, unless it has expired.
fn live<'a>(state: &'a mut State, args: Args<'_>) -> Result<Option<&'a Arc<[u8]>>, Reply> {
    let clock = state.field_clock();
    let hash = state.read_fields(args.at(1), [args.at(2)])?;
    Ok(hash.and_then(|hash| hash.live(args.at(2), clock)))
}

fn bulk(value: Option<&Arc<[u8]>>) -> Reply {
    value.map_or(Reply::Nil, |value| Reply::Bulk(value.clone()))
}
