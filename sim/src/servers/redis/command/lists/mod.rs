//! Commands on lists. Source: `t_list.c` of Redis 7.0.

mod blocking;
mod moves;
mod pop;
mod positions;

use super::ranges::{parse_integer, places};
use super::{NO_SUCH_KEY, SYNTAX_ERROR, words};
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{End, List};

pub(super) use blocking::{blmove, blmpop, blpop, brpop, brpoplpush};
pub(super) use moves::{lmove, rpoplpush};
pub(super) use pop::{lmpop, lpop, rpop};
pub(super) use positions::{linsert, lpos, lrem};

const LTRIM: Event = Event(Class::List, "ltrim");

pub(super) fn lpush(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    push(state, args, End::First, true)
}

pub(super) fn rpush(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    push(state, args, End::Last, true)
}

pub(super) fn lpushx(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    push(state, args, End::First, false)
}

pub(super) fn rpushx(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    push(state, args, End::Last, false)
}

fn push(state: &mut State, args: Args<'_>, end: End, creates: bool) -> Result<Reply, Reply> {
    let key = args.at(1);
    if !creates && state.read::<List>(key)?.is_none() {
        return Ok(Reply::Integer(0));
    }
    let list: &mut List = state.edit_or_create(key)?;
    args.skip(2).iter().for_each(|item| list.push(end, item.into()));
    let length = list.items.len();
    state.changed(key, pushed(end), &words(args));
    Ok(Reply::count(length))
}

pub(super) fn llen(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let list: Option<&List> = state.read(args.at(1))?;
    Ok(Reply::count(list.map_or(0, |list| list.items.len())))
}

pub(super) fn lrange(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (start, end) = (parse_integer(args.at(2))?, parse_integer(args.at(3))?);
    let Some(list) = state.read::<List>(args.at(1))? else { return Ok(Reply::Array(Vec::new())) };
    Ok(Reply::texts(list.items.range(places(start, end, list.items.len())).cloned()))
}

pub(super) fn lindex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let Some(list) = state.read::<List>(args.at(1))? else { return Ok(Reply::Nil) };
    let place = list.place(parse_integer(args.at(2))?);
    Ok(place.map_or(Reply::Nil, |place| Reply::Bulk(list.items[place].clone())))
}

pub(super) fn lset(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let list: &mut List = state.edit(args.at(1))?.ok_or(Reply::error(NO_SUCH_KEY))?;
    let index = parse_integer(args.at(2))?;
    let place = list.place(index).ok_or(Reply::error("ERR index out of range"))?;
    list.items[place] = args.at(3).into();
    state.changed(args.at(1), Event(Class::List, "lset"), &words(args));
    Ok(Reply::OK)
}

pub(super) fn ltrim(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (start, end) = (parse_integer(args.at(2))?, parse_integer(args.at(3))?);
    let Some(list) = state.edit::<List>(args.at(1))? else { return Ok(Reply::OK) };
    let length = list.items.len();
    let kept = places(start, end, length);
    list.items.truncate(kept.end);
    list.items.drain(..kept.start);
    if kept.len() < length {
        state.changed(args.at(1), LTRIM, &words(args));
    } else {
        state.notify(LTRIM, args.at(1));
        // A list that stays as it was counts as changed for WATCH, as in Redis.
        state.touch(args.at(1));
    }
    Ok(Reply::OK)
}

/// Returns the event of a push at an end.
fn pushed(end: End) -> Event {
    Event(Class::List, if end == End::First { "lpush" } else { "rpush" })
}

/// Returns the event of a pop at an end.
fn popped(end: End) -> Event {
    Event(Class::List, if end == End::First { "lpop" } else { "rpop" })
}

/// Reads the name of an end.
fn parse_end(text: &[u8]) -> Result<End, Reply> {
    match text.to_ascii_lowercase().as_slice() {
        b"left" => Ok(End::First),
        b"right" => Ok(End::Last),
        _ => Err(Reply::error(SYNTAX_ERROR)),
    }
}
