//! The commands as Valkey has them. Source: `t_hash.c` of Valkey 9.1.

use super::super::expiry::{Conditions, UNIX_MILLIS, Unit, invalid_expire_time, nearest_second};
use super::super::ranges::parse_integer;
use super::super::strings::{Options, OptionsOf, repeated};
use super::super::{SYNTAX_ERROR, words};
use super::{
    DONE, HEXPIRE, HPERSIST, NO_EXPIRY, NO_FIELD, NOT_MET, REMOVED, integers, no_fields, record_expiry,
    repeated_name, values,
};
use crate::servers::redis::effects::decimal;
use crate::servers::redis::events::{DEL, HDEL, HEXPIRED, HSET};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::Hash;

/// The error for a number of fields that is not that of the fields.
const WRONG_NUMBER: &str = "ERR numfields should be greater than 0 and match the provided number of fields";

/// HEXPIRE and its like.
pub(super) fn expire(state: &mut State, args: Args<'_>, unit: Unit, command: &str) -> Result<Reply, Reply> {
    let (conditions, fields) = block(args, 3, 1, |before| Conditions::parse(before.skip(3)))?;
    let at = time(args.at(2), unit, state.now_ms(), command)?;
    let (key, clock, is_past) = (args.at(1), state.field_clock(), state.is_past(at));
    let Some(hash) = state.edit::<Hash>(key)? else { return Ok(no_fields(fields.len())) };
    let (mut answers, mut changed) = (Vec::new(), Vec::new());
    for field in fields.iter() {
        answers.push(if hash.live(field, clock).is_none() {
            NO_FIELD
        } else if !conditions.hold(hash.expiry(field), at) {
            NOT_MET
        } else {
            change(hash, field, at, is_past);
            changed.push(field);
            if is_past { REMOVED } else { DONE }
        });
    }
    if is_past {
        record_expired(state, key, &changed);
    } else if !changed.is_empty() {
        let at = decimal(at);
        let start = [repeated_name(args, unit), key, &at];
        state.changed(key, HEXPIRE, &start.into_iter().chain(args.skip(3).iter()).collect::<Vec<_>>());
    }
    Ok(integers(answers))
}

pub(super) fn time_left(state: &mut State, args: Args<'_>, unit: Unit) -> Result<Reply, Reply> {
    let fields = all_fields(args, SYNTAX_ERROR)?;
    let (clock, now_ms) = (state.field_clock(), state.now_ms());
    let Some(hash) = state.read::<Hash>(args.at(1))? else { return Ok(no_fields(fields.len())) };
    let base_ms = if unit.is_absolute { 0 } else { now_ms };
    let left = |field| match hash.expiry(field) {
        _ if hash.live(field, clock).is_none() => NO_FIELD,
        None => NO_EXPIRY,
        Some(at) => {
            let left = at.saturating_sub(base_ms).max(0);
            if unit.in_seconds { nearest_second(left) } else { left }
        }
    };
    Ok(integers(fields.iter().map(left).collect()))
}

pub(super) fn hpersist(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let fields = all_fields(args, WRONG_NUMBER)?;
    let (key, clock) = (args.at(1), state.field_clock());
    let Some(hash) = state.edit::<Hash>(key)? else { return Ok(no_fields(fields.len())) };
    let persist = |field: &[u8]| match hash.expiry(field) {
        _ if hash.live(field, clock).is_none() => NO_FIELD,
        None => NO_EXPIRY,
        Some(_) => {
            hash.set_expiry(field, None);
            DONE
        }
    };
    let answers: Vec<_> = fields.iter().map(persist).collect();
    if answers.contains(&DONE) {
        state.changed(key, HPERSIST, &words(args));
    }
    Ok(integers(answers))
}

pub(super) fn hsetex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (options, pairs) = hsetex_arguments(args, state.is_replaying)?;
    let written = args.take(args.len() - pairs.len() - 2).skip(2);
    let (key, clock) = (args.at(1), state.field_clock());
    let exists = state.edit::<Hash>(key)?.is_some();
    if !options.allow_key(exists) {
        return Ok(Reply::Integer(0));
    }
    let time_of = |(unit, text)| time(text, unit, state.now_ms(), "hsetex");
    let at = options.expiry.map(time_of).transpose()?;
    let names: Vec<_> = pairs.iter().step_by(2).collect();
    let hash = state.read::<Hash>(key)?;
    let is_live = |field: &&[u8]| hash.is_some_and(|hash| hash.live(field, clock).is_some());
    if !names.iter().all(|field| options.allow_field(is_live(field))) {
        return Ok(Reply::Integer(0));
    }
    if at.is_some_and(|at| state.is_past(at)) {
        set_expired(state, key, &names)?;
        return Ok(Reply::Integer(1));
    }
    set(state, key, pairs, at, options.keeps_expiry)?;
    if at.is_some() {
        state.notify(HSET, key);
    }
    let event = if at.is_some() { HEXPIRE } else { HSET };
    let at = at.map(decimal);
    let repeated = repeated(written, false, |unit| at.as_deref().filter(|_| unit != UNIX_MILLIS));
    let rest = args.skip(2 + written.len());
    let words: Vec<_> = args.take(2).iter().chain(repeated).chain(rest.iter()).collect();
    state.changed(key, event, &words);
    Ok(Reply::Integer(1))
}

/// Reads the options, and the fields with their values. A key that is called like the option FIELDS stands
/// for it, but not in what this server writes.
fn hsetex_arguments(args: Args<'_>, is_replaying: bool) -> Result<(Options<'_>, Args<'_>), Reply> {
    let parse = |from| block(args, from, 2, |before| Options::parse(before.skip(2), OptionsOf::HSetEx));
    if is_replaying { parse(2).or_else(|_| parse(0)) } else { parse(0) }
}

/// Sets fields, and publishes that it overwrote expired ones. If it is to keep the expiries of fields, those
/// are removed first by a command of their own, since replicas still see them.
fn set(
    state: &mut State,
    key: &[u8],
    pairs: Args<'_>,
    at: Option<i64>,
    keeps_expiry: bool,
) -> Result<(), Reply> {
    let clock = state.overwrite_clock();
    let hash: &mut Hash = state.edit_or_create(key)?;
    let mut expired = vec![&b"HDEL"[..], key];
    for place in (0..pairs.len()).step_by(2) {
        let (field, value) = (pairs.at(place), pairs.at(place + 1));
        let was_expired = hash.has_expired(field, clock);
        if was_expired {
            expired.push(field);
        }
        if keeps_expiry && !was_expired {
            hash.set_value(field, value);
        } else {
            hash.set(field, value);
        }
        if let Some(at) = at {
            change(hash, field, at, false);
        }
    }
    if expired.len() > 2 {
        state.notify(HEXPIRED, key);
        if keeps_expiry {
            state.as_command(&expired, |state| state.touch_part(key));
        }
    }
    Ok(())
}

/// Removes the fields of an HSETEX whose time has passed, and publishes as if they had been set first.
fn set_expired(state: &mut State, key: &[u8], names: &[&[u8]]) -> Result<(), Reply> {
    let hash: &mut Hash = state.edit_or_create(key)?;
    let removed: Vec<_> = names.iter().copied().filter(|field| hash.remove(field)).collect();
    let is_empty = hash.is_empty();
    [HSET, HEXPIRE].into_iter().for_each(|event| state.notify(event, key));
    if !removed.is_empty() {
        record_expired(state, key, &removed);
        return Ok(());
    }
    state.notify(HEXPIRED, key);
    if is_empty {
        // It was created by this command: replicas have never seen it.
        state.keyspace_mut().remove(key);
        state.notify(DEL, key);
    }
    Ok(())
}

pub(super) fn hgetex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (options, fields) = block(args, 0, 1, |before| Options::parse(before.skip(2), OptionsOf::GetEx))?;
    let (key, clock) = (args.at(1), state.field_clock());
    state.reading(|state| state.read::<Hash>(key).map(|_| ()))?;
    let time_of = |(unit, text)| time(text, unit, state.now_ms(), "hgetex");
    let at = options.expiry.map(time_of).transpose()?;
    let is_past = at.is_some_and(|at| state.is_past(at));
    let Some(hash) = state.edit::<Hash>(key)? else { return Ok(values(vec![None; fields.len()])) };
    let (mut found, mut changed) = (Vec::new(), Vec::new());
    for field in fields.iter() {
        let value = hash.live(field, clock).cloned();
        match at {
            _ if value.is_none() => {}
            Some(at) => {
                change(hash, field, at, is_past);
                changed.push(field);
            }
            None if options.persists && hash.expiry(field).is_some() => {
                hash.set_expiry(field, None);
                changed.push(field);
            }
            None => {}
        }
        found.push(value);
    }
    if is_past {
        record_expired(state, key, &changed);
    } else if !changed.is_empty() {
        record_expiry(state, key, at, &changed);
    }
    Ok(values(found))
}

pub(super) fn hgetdel(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let fields = all_fields(args, WRONG_NUMBER)?;
    let (key, clock) = (args.at(1), state.field_clock());
    let Some(hash) = state.edit::<Hash>(key)? else { return Ok(values(vec![None; fields.len()])) };
    let take = |field| {
        let value = hash.live(field, clock).cloned();
        value.filter(|_| hash.remove(field))
    };
    let found: Vec<_> = fields.iter().map(take).collect();
    if found.iter().any(Option::is_some) {
        state.changed(key, HDEL, &words(args));
    }
    Ok(values(found))
}

/// Reads options, then `FIELDS numfields` and the fields; `per_field` words for each. Looks for FIELDS at
/// place `from` first, and gives the words before it to `options`.
fn block<'a, T>(
    args: Args<'a>,
    from: usize,
    per_field: usize,
    options: impl FnOnce(Args<'a>) -> Result<T, Reply>,
) -> Result<(T, Args<'a>), Reply> {
    let is_fields = |at: &usize| args.at(*at).eq_ignore_ascii_case(b"fields");
    let at = (from..args.len().saturating_sub(1)).find(is_fields).ok_or(Reply::error(WRONG_NUMBER))?;
    let options = options(args.take(at))?;
    let number = parse_integer(args.at(at + 1))?;
    let fields = args.skip(at + 2);
    check_number(number, fields.len(), per_field, WRONG_NUMBER)?;
    Ok((options, fields))
}

/// Reads `FIELDS numfields field …`, which must be all that follows the key.
fn all_fields<'a>(args: Args<'a>, wrong_number: &'static str) -> Result<Args<'a>, Reply> {
    if !args.at(2).eq_ignore_ascii_case(b"fields") {
        return Err(Reply::error(SYNTAX_ERROR));
    }
    let number = parse_integer(args.at(3))?;
    let fields = args.skip(4);
    check_number(number, fields.len(), 1, wrong_number)?;
    Ok(fields)
}

fn check_number(number: i64, words: usize, per_field: usize, error: &'static str) -> Result<(), Reply> {
    let wanted = usize::try_from(number).ok().and_then(|number| number.checked_mul(per_field));
    if wanted.is_some_and(|wanted| wanted > 0 && wanted == words) { Ok(()) } else { Err(Reply::error(error)) }
}

/// Reads an expiry. Returns it in milliseconds since the Unix epoch.
fn time(text: &[u8], unit: Unit, now_ms: i64, command: &str) -> Result<i64, Reply> {
    let number = parse_integer(text)?;
    let expires_at =
        Some(number).filter(|number| *number >= 0).and_then(|number| unit.resolve(number, now_ms));
    expires_at.ok_or_else(|| invalid_expire_time(command))
}

/// Sets the expiry of a field, or removes a field whose expiry has passed.
fn change(hash: &mut Hash, field: &[u8], at: i64, is_past: bool) {
    if is_past {
        hash.remove(field);
    } else {
        hash.become_table();
        hash.set_expiry(field, Some(at));
    }
}

/// Records that fields were removed since their expiry has passed; does nothing if there are none.
fn record_expired(state: &mut State, key: &[u8], removed: &[&[u8]]) {
    if !removed.is_empty() {
        let words: Vec<_> = [&b"HDEL"[..], key].into_iter().chain(removed.iter().copied()).collect();
        state.changed(key, HEXPIRED, &words);
    }
}
