//! Commands on two databases. Source: `db.c` of Redis 7.0.

use super::keys::database;
use super::ranges::parse_i32;
use super::{SYNTAX_ERROR, words};
use crate::servers::redis::effects::{Effect, Removal};
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::keyspace::Entry;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Hash, Value};

const SAME: &str = "ERR source and destination objects are the same";

pub(super) fn r#move(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let key = args.at(1);
    let target = database(parse_i32(args.at(2), None)?)?;
    if target == state.selected() {
        return Err(Reply::error(SAME));
    }
    let Some(entry) = state.lookup(key).cloned() else { return Ok(Reply::Integer(0)) };
    if state.within(target, |state| state.lookup(key).is_some()) {
        return Ok(Reply::Integer(0));
    }
    state.as_command(&words(args), |state| {
        state.remove(key, Removal::Deleted);
        state.within(target, |state| state.put(key, entry));
    });
    state.notify(Event(Class::Generic, "move_from"), key);
    state.within(target, |state| state.notify(Event(Class::Generic, "move_to"), key));
    Ok(Reply::Integer(1))
}

pub(super) fn swapdb(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let one = parse_i32(args.at(1), Some("ERR invalid first DB index"))?;
    let other = parse_i32(args.at(2), Some("ERR invalid second DB index"))?;
    let (one, other) = (database(one)?, database(other)?);
    if one == other {
        return Ok(Reply::OK);
    }
    state.swap(one, other);
    let mut keys = Vec::new();
    for number in [one, other] {
        state.within(number, |state| keys.extend(state.keyspace().iter().map(|(key, _)| key.clone())));
    }
    state.as_command(&words(args), |state| {
        for number in [one, other] {
            let changed = |state: &mut State| {
                keys.iter().for_each(|key| state.emit(Effect::Changed { key: key.clone() }));
            };
            state.within(number, changed);
            state.wishes.note_replaced(number);
        }
    });
    Ok(Reply::OK)
}

pub(super) fn copy(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (from, to) = (args.at(1), args.at(2));
    let (mut target, mut replaces) = (state.selected(), false);
    let mut options = args.skip(3).iter();
    while let Some(option) = options.next() {
        if option.eq_ignore_ascii_case(b"replace") {
            replaces = true;
        } else if option.eq_ignore_ascii_case(b"db") {
            let number = options.next().ok_or(Reply::error(SYNTAX_ERROR))?;
            target = database(parse_i32(number, None)?)?;
        } else {
            return Err(Reply::error(SYNTAX_ERROR));
        }
    }
    if target == state.selected() && from == to {
        return Err(Reply::error(SAME));
    }
    let Some(entry) = state.reading(|state| state.lookup(from).cloned()) else {
        return Ok(Reply::Integer(0));
    };
    let exists = state.within(target, |state| state.lookup(to).is_some());
    if exists && !replaces {
        return Ok(Reply::Integer(0));
    }
    let value = match entry.value {
        Value::String(text) => Value::String(text.copied()),
        Value::Hash(hash) => Value::Hash(copied(state, hash)),
        other => other,
    };
    state.as_command(&words(args), |state| {
        state.within(target, |state| {
            state.remove(to, Removal::Deleted);
            let entry = Entry::new(value, entry.expires_at, state.now_micros);
            state.put(to, entry);
            state.notify(Event(Class::Generic, "copy_to"), to);
        });
    });
    Ok(Reply::Integer(1))
}

/// Returns a hash as COPY stores it: in Valkey without expired fields, unless it has no others.
fn copied(state: &State, mut hash: Box<Hash>) -> Box<Hash> {
    let expired = hash.expired(state.hidden_clock());
    if expired.len() < hash.len() {
        expired.iter().for_each(|field| _ = hash.remove(field));
    }
    hash
}
