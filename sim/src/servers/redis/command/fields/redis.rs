//! The commands as Redis has them. Source: `t_hash.c` of Redis 8.4.

use super::super::expiry::{UNIX_MILLIS, Unit};
use super::super::words;
use super::arguments::{Expire, Options, OptionsOf, all_fields};
use super::{
    DONE, HEXPIRE, HPERSIST, NO_EXPIRY, NO_FIELD, NOT_MET, REMOVED, count, integers, no_fields,
    record_expiry, repeated_name, values,
};
use crate::servers::redis::effects::decimal;
use crate::servers::redis::events::{HDEL, HEXPIRED, HSET};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::Hash;

/// HEXPIRE and its like. They do not look at former expiries that have passed: such a field lives again.
pub(super) fn expire(state: &mut State, args: Args<'_>, unit: Unit, command: &str) -> Result<Reply, Reply> {
    let key = args.at(1);
    state.edit::<Hash>(key)?;
    let Expire { expires_at: at, conditions, before, fields, after } =
        Expire::parse(args, unit, state.now_ms(), command)?;
    let is_past = state.is_past(at);
    let Some(hash) = state.edit::<Hash>(key)? else { return Ok(no_fields(fields.len())) };
    hash.become_ordered();
    let (mut answers, mut changed) = (Vec::new(), Vec::new());
    for field in fields.iter() {
        answers.push(if hash.get(field).is_none() {
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
        state.remove_fields(key, &changed, HDEL, false);
    } else if !changed.is_empty() {
        let (at, count) = (decimal(at), count(changed.len()));
        let start = [repeated_name(args, unit), key, &at];
        let words =
            start.into_iter().chain(before.iter()).chain([&*count]).chain(changed).chain(after.iter());
        state.changed(key, HEXPIRE, &words.collect::<Vec<_>>());
    }
    Ok(integers(answers))
}

pub(super) fn time_left(state: &mut State, args: Args<'_>, unit: Unit) -> Result<Reply, Reply> {
    let (clock, now_ms) = (state.field_clock(), state.now_ms());
    let hash = state.read::<Hash>(args.at(1))?;
    let fields = all_fields(args)?;
    let Some(hash) = hash else { return Ok(no_fields(fields.len())) };
    let base_ms = if unit.is_absolute { 0 } else { now_ms };
    let left = |field| match hash.expiry(field) {
        _ if hash.get(field).is_none() => NO_FIELD,
        None => NO_EXPIRY,
        // In the compact encoding already in the millisecond of the expiry.
        Some(at) if at < clock || (at == clock && !hash.is_table()) => NO_FIELD,
        Some(at) if unit.in_seconds => at.saturating_add(999).saturating_sub(base_ms) / 1000,
        Some(at) => at.saturating_sub(base_ms),
    };
    Ok(integers(fields.iter().map(left).collect()))
}

pub(super) fn hpersist(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (key, clock) = (args.at(1), state.field_clock());
    state.edit::<Hash>(key)?;
    let fields = all_fields(args)?;
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
    let options = Options::parse(args, OptionsOf::SetEx, state.now_ms())?;
    let key = args.at(1);
    if !allows(state, key, &options)? {
        return Ok(Reply::Integer(0));
    }
    let at = options.expiry.map(|(_, _, at)| at);
    let is_past = at.is_some_and(|at| state.is_past(at));
    let hash: &mut Hash = state.edit_or_create(key)?;
    if at.is_some() {
        hash.become_ordered();
    }
    for place in (0..options.fields.len()).step_by(2) {
        let (field, value) = (options.fields.at(place), options.fields.at(place + 1));
        if at.is_some() || options.keeps_expiry {
            hash.set_value(field, value);
        } else {
            hash.set(field, value);
        }
        if let Some(at) = at {
            change(hash, field, at, is_past);
        }
    }
    let Some((place, unit, at)) = options.expiry else {
        state.changed(key, HSET, &words(args));
        return Ok(Reply::Integer(1));
    };
    state.notify(HSET, key);
    if is_past {
        let names: Vec<_> = options.fields.iter().step_by(2).collect();
        state.remove_fields(key, &names, HDEL, false);
    } else {
        let (at, mut words) = (decimal(at), words(args));
        if unit != UNIX_MILLIS {
            words.splice(place..place + 2, [&b"PXAT"[..], &at]);
        }
        state.changed(key, HEXPIRE, &words);
    }
    Ok(Reply::Integer(1))
}

/// Returns whether FNX or FXX is met. Removes the expired fields among those that it looks at: it stops at
/// the first one that decides.
fn allows(state: &mut State, key: &[u8], options: &Options<'_>) -> Result<bool, Reply> {
    let Some(must_exist) = options.presence else { return Ok(true) };
    let (clock, removes_expired) = (state.field_clock(), state.removes_expired());
    let Some(hash) = state.read::<Hash>(key)? else { return Ok(!must_exist) };
    let (mut expired, mut is_met) = (Vec::new(), true);
    for field in options.fields.iter().step_by(2) {
        let exists = hash.live(field, clock).is_some();
        if hash.has_expired(field, clock) && removes_expired && !expired.contains(&field) {
            expired.push(field);
        }
        is_met = exists == must_exist;
        if !is_met {
            break;
        }
    }
    state.remove_fields(key, &expired, HEXPIRED, is_met);
    Ok(is_met)
}

pub(super) fn hgetex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (key, clock) = (args.at(1), state.field_clock());
    state.edit::<Hash>(key)?;
    let Options { expiry, persists, fields, .. } = Options::parse(args, OptionsOf::GetEx, state.now_ms())?;
    let at = expiry.map(|(_, _, at)| at);
    let is_past = at.is_some_and(|at| state.is_past(at));
    state.read_fields(key, fields.iter())?;
    let Some(hash) = state.edit::<Hash>(key)? else { return Ok(values(vec![None; fields.len()])) };
    if persists || at.is_some() {
        hash.become_ordered();
    }
    let (mut found, mut changed) = (Vec::new(), Vec::new());
    for field in fields.iter() {
        let value = hash.live(field, clock).cloned();
        match at {
            _ if value.is_none() => {}
            Some(at) => {
                change(hash, field, at, is_past);
                changed.push(field);
            }
            None if persists && hash.expiry(field).is_some() => {
                hash.set_expiry(field, None);
                changed.push(field);
            }
            None => {}
        }
        found.push(value);
    }
    if is_past {
        state.remove_fields(key, &changed, HDEL, false);
    } else if !changed.is_empty() {
        record_expiry(state, key, at, &fields.iter().collect::<Vec<_>>());
    }
    Ok(values(found))
}

pub(super) fn hgetdel(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (key, clock) = (args.at(1), state.field_clock());
    state.edit::<Hash>(key)?;
    let fields = all_fields(args)?;
    state.read_fields(key, fields.iter())?;
    let Some(hash) = state.edit::<Hash>(key)? else { return Ok(values(vec![None; fields.len()])) };
    let take = |field| {
        let value = hash.live(field, clock).cloned();
        value.filter(|_| hash.remove(field))
    };
    let found: Vec<_> = fields.iter().map(take).collect();
    if found.iter().any(Option::is_some) {
        let words: Vec<_> = [&b"HDEL"[..], key].into_iter().chain(fields.iter()).collect();
        state.changed(key, HDEL, &words);
    }
    Ok(values(found))
}

/// Sets the expiry of a field, or removes a field whose expiry has passed.
fn change(hash: &mut Hash, field: &[u8], at: i64, is_past: bool) {
    if is_past {
        hash.remove(field);
    } else {
        hash.set_expiry(field, Some(at));
    }
}
