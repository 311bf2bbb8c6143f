//! The commands that wait for members: BZPOPMIN, BZPOPMAX and BZMPOP. They are repeated as the commands that
//! do not wait.

use super::super::many::Many;
use super::super::timeouts::deadline;
use super::pop::{parse_end, take_many, take_one};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{End, SortedSet};
use crate::servers::redis::waiting::Wish;

pub(crate) fn bzpopmin(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    pop_or_wait(state, args, End::First)
}

pub(crate) fn bzpopmax(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    pop_or_wait(state, args, End::Last)
}

fn pop_or_wait(state: &mut State, args: Args<'_>, end: End) -> Result<Reply, Reply> {
    let last = args.len() - 1;
    let deadline = deadline(state, args.at(last))?;
    let keys = args.skip(1).take(last - 1);
    for key in keys.iter() {
        if state.read::<SortedSet>(key)?.is_some() {
            return take_one(state, key, end);
        }
    }
    let serve = match end {
        End::First => |state: &mut State, key: &[u8], _: Args<'_>| serve(state, key, End::First),
        End::Last => |state: &mut State, key: &[u8], _: Args<'_>| serve(state, key, End::Last),
    };
    Ok(state.wait(Wish::new(keys.iter(), args, serve, deadline), Reply::NilArray))
}

fn serve(state: &mut State, key: &[u8], end: End) -> Option<Reply> {
    state.read::<SortedSet>(key).ok().flatten()?;
    take_one(state, key, end).ok()
}

pub(crate) fn bzmpop(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let many = Many::parse(args.skip(2), parse_end)?;
    let deadline = deadline(state, args.at(1))?;
    for key in many.keys.iter() {
        if state.read::<SortedSet>(key)?.is_some() {
            return take_many(state, key, &many);
        }
    }
    let serve = |state: &mut State, key: &[u8], args: Args<'_>| {
        state.read::<SortedSet>(key).ok().flatten()?;
        Many::parse(args.skip(2), parse_end).and_then(|many| take_many(state, key, &many)).ok()
    };
    Ok(state.wait(Wish::new(many.keys.iter(), args, serve, deadline), Reply::NilArray))
}
