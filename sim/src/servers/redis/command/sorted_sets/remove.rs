//! ZREMRANGEBYRANK, ZREMRANGEBYSCORE and ZREMRANGEBYLEX.

use std::ops::Range;

use super::super::ranges::{parse_integer, places};
use super::super::words;
use super::bounds::Bounds;
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::SortedSet;

pub(crate) fn zremrangebyrank(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (start, end) = (parse_integer(args.at(2))?, parse_integer(args.at(3))?);
    remove(state, args, "zremrangebyrank", |set| places(start, end, set.len()))
}

pub(crate) fn zremrangebyscore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let bounds = Bounds::scores(args.at(2), args.at(3))?;
    remove(state, args, "zremrangebyscore", |set| bounds.find(set.items()))
}

pub(crate) fn zremrangebylex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let bounds = Bounds::members(args.at(2), args.at(3))?;
    remove(state, args, "zremrangebylex", |set| bounds.find(set.items()))
}

fn remove(
    state: &mut State,
    args: Args<'_>,
    event: &'static str,
    range: impl Fn(&SortedSet) -> Range<usize>,
) -> Result<Reply, Reply> {
    let Some(set) = state.edit::<SortedSet>(args.at(1))? else { return Ok(Reply::Integer(0)) };
    let removed = set.remove_range(range(set));
    if removed > 0 {
        state.changed(args.at(1), Event(Class::SortedSet, event), &words(args));
    }
    Ok(Reply::count(removed))
}
