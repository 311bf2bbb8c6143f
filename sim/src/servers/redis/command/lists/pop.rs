//! LPOP, RPOP and LMPOP.

use std::sync::Arc;

use super::super::many::Many;
use super::super::ranges::parse_count;
use super::super::{words, wrong_arity};
use super::{parse_end, popped};
use crate::servers::redis::number::with_i64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{End, List};

pub(crate) fn lpop(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    pop(state, args, End::First, "lpop")
}

pub(crate) fn rpop(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    pop(state, args, End::Last, "rpop")
}

fn pop(state: &mut State, args: Args<'_>, end: End, name: &str) -> Result<Reply, Reply> {
    let count = match args.len() {
        2 => None,
        3 => Some(parse_count(args.at(2))?),
        _ => return Err(wrong_arity(name)),
    };
    let has_list = state.read::<List>(args.at(1))?.is_some();
    Ok(match count {
        _ if !has_list => count.map_or(Reply::Nil, |_| Reply::NilArray),
        Some(count) => Reply::texts(take_as(state, args.at(1), end, count, &words(args))?),
        None => take(state, args.at(1), end, None)?.pop().map_or(Reply::Nil, Reply::Bulk),
    })
}

pub(crate) fn lmpop(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let many = Many::parse(args.skip(1), parse_end)?;
    for key in many.keys.iter() {
        if state.read::<List>(key)?.is_some() {
            return take_many(state, key, &many);
        }
    }
    Ok(Reply::NilArray)
}

/// Takes elements of `key`, and returns the reply.
pub(super) fn take_many(state: &mut State, key: &[u8], many: &Many<'_>) -> Result<Reply, Reply> {
    let taken = take(state, key, many.end, Some(many.count))?;
    Ok(Reply::Array(vec![Reply::bulk(key), Reply::texts(taken)]))
}

/// Removes elements at one end, one without a `count`. Repeated as LPOP or RPOP.
pub(super) fn take(
    state: &mut State,
    key: &[u8],
    end: End,
    count: Option<usize>,
) -> Result<Vec<Arc<[u8]>>, Reply> {
    let name: &[u8] = if end == End::First { b"LPOP" } else { b"RPOP" };
    let Some(count) = count else { return take_as(state, key, end, 1, &[name, key]) };
    let length = state.read::<List>(key)?.map_or(0, |list| list.items.len());
    // At most the length of a list.
    with_i64(count.min(length) as i64, |text| take_as(state, key, end, count, &[name, key, text]))
}

/// Removes at most `count` elements at one end. Repeated as the command `words`.
fn take_as(
    state: &mut State,
    key: &[u8],
    end: End,
    count: usize,
    words: &[&[u8]],
) -> Result<Vec<Arc<[u8]>>, Reply> {
    let Some(list) = state.edit::<List>(key)? else { return Ok(Vec::new()) };
    let taken: Vec<_> = (0..count.min(list.items.len())).filter_map(|_| list.pop(end)).collect();
    if !taken.is_empty() {
        state.changed(key, popped(end), words);
    }
    Ok(taken)
}
