//! ZPOPMIN, ZPOPMAX and ZMPOP.

use super::super::many::Many;
use super::super::ranges::parse_count;
use super::super::{SYNTAX_ERROR, words};
use super::pair;
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::number::with_i64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{End, Scored, SortedSet};

pub(crate) fn zpopmin(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    pop(state, args, End::First)
}

pub(crate) fn zpopmax(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    pop(state, args, End::Last)
}

fn pop(state: &mut State, args: Args<'_>, end: End) -> Result<Reply, Reply> {
    let count = match args.len() {
        2 => None,
        3 => Some(parse_count(args.at(2))?),
        _ => return Err(Reply::error(SYNTAX_ERROR)),
    };
    let taken = take_as(state, args.at(1), end, count.unwrap_or(1), &words(args))?;
    Ok(match count {
        Some(_) => Reply::Nested(taken.iter().map(pair).collect()),
        None => Reply::Array(taken.iter().flat_map(flat).collect()),
    })
}

pub(crate) fn zmpop(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let many = Many::parse(args.skip(1), parse_end)?;
    for key in many.keys.iter() {
        if state.read::<SortedSet>(key)?.is_some() {
            return take_many(state, key, &many);
        }
    }
    Ok(Reply::NilArray)
}

/// Takes members of `key`, and returns the reply: pairs, in RESP2 too.
pub(super) fn take_many(state: &mut State, key: &[u8], many: &Many<'_>) -> Result<Reply, Reply> {
    let length = state.read::<SortedSet>(key)?.map_or(0, SortedSet::len);
    let name = name(many.end);
    let taken = with_i64(many.count.min(length) as i64, |count| {
        take_as(state, key, many.end, many.count, &[name, key, count])
    })?;
    let pairs = taken.iter().map(|item| Reply::Array(flat(item).into())).collect();
    Ok(Reply::Array(vec![Reply::bulk(key), Reply::Array(pairs)]))
}

/// Takes one member of `key`, and returns the reply of BZPOPMIN or BZPOPMAX.
pub(super) fn take_one(state: &mut State, key: &[u8], end: End) -> Result<Reply, Reply> {
    let taken = take_as(state, key, end, 1, &[name(end), key])?;
    Ok(Reply::Array([Reply::bulk(key)].into_iter().chain(taken.iter().flat_map(flat)).collect()))
}

/// Reads the name of an end.
pub(super) fn parse_end(text: &[u8]) -> Result<End, Reply> {
    match text.to_ascii_lowercase().as_slice() {
        b"min" => Ok(End::First),
        b"max" => Ok(End::Last),
        _ => Err(Reply::error(SYNTAX_ERROR)),
    }
}

fn name(end: End) -> &'static [u8] {
    if end == End::First { b"ZPOPMIN" } else { b"ZPOPMAX" }
}

fn flat(item: &Scored) -> [Reply; 2] {
    [Reply::Bulk(item.member.clone()), Reply::Double(item.score)]
}

/// Removes at most `count` members at one end. Repeated as the command `words`.
fn take_as(
    state: &mut State,
    key: &[u8],
    end: End,
    count: usize,
    words: &[&[u8]],
) -> Result<Vec<Scored>, Reply> {
    let Some(set) = state.edit::<SortedSet>(key)? else { return Ok(Vec::new()) };
    let taken: Vec<_> = (0..count.min(set.len())).filter_map(|_| set.pop(end)).collect();
    if !taken.is_empty() {
        let event = if end == End::First { "zpopmin" } else { "zpopmax" };
        state.changed(key, Event(Class::SortedSet, event), words);
    }
    Ok(taken)
}
