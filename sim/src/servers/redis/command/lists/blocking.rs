//! The commands that wait for items: BLPOP, BRPOP, BLMPOP, BLMOVE and BRPOPLPUSH. They are repeated as the
//! commands that do not wait.

use super::super::many::Many;
use super::super::timeouts::deadline;
use super::moves::move_item;
use super::parse_end;
use super::pop::{take, take_many};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{End, List};
use crate::servers::redis::waiting::Wish;

pub(crate) fn blpop(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    pop_or_wait(state, args, End::First)
}

pub(crate) fn brpop(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    pop_or_wait(state, args, End::Last)
}

fn pop_or_wait(state: &mut State, args: Args<'_>, end: End) -> Result<Reply, Reply> {
    let last = args.len() - 1;
    let deadline = deadline(state, args.at(last))?;
    let keys = args.skip(1).take(last - 1);
    for key in keys.iter() {
        if state.read::<List>(key)?.is_some() {
            return pop(state, key, end);
        }
    }
    let serve = match end {
        End::First => |state: &mut State, key: &[u8], _: Args<'_>| serve(state, key, End::First),
        End::Last => |state: &mut State, key: &[u8], _: Args<'_>| serve(state, key, End::Last),
    };
    Ok(state.wait(Wish::new(keys.iter(), args, serve, deadline), Reply::NilArray))
}

/// Removes an item and returns it with its key.
fn pop(state: &mut State, key: &[u8], end: End) -> Result<Reply, Reply> {
    let item = take(state, key, end, None)?;
    Ok(Reply::texts([key.into()].into_iter().chain(item)))
}

fn serve(state: &mut State, key: &[u8], end: End) -> Option<Reply> {
    state.read::<List>(key).ok().flatten()?;
    pop(state, key, end).ok()
}

pub(crate) fn blmpop(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let many = Many::parse(args.skip(2), parse_end)?;
    let deadline = deadline(state, args.at(1))?;
    for key in many.keys.iter() {
        if state.read::<List>(key)?.is_some() {
            return take_many(state, key, &many);
        }
    }
    let serve = |state: &mut State, key: &[u8], args: Args<'_>| {
        state.read::<List>(key).ok().flatten()?;
        Many::parse(args.skip(2), parse_end).and_then(|many| take_many(state, key, &many)).ok()
    };
    Ok(state.wait(Wish::new(many.keys.iter(), args, serve, deadline), Reply::NilArray))
}

pub(crate) fn blmove(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    parse_end(args.at(3))?;
    parse_end(args.at(4))?;
    move_or_wait(state, args, 5, |state, args| {
        let ends = [parse_end(args.at(3))?, parse_end(args.at(4))?];
        let words: [&[u8]; 5] = [b"LMOVE", args.at(1), args.at(2), args.at(3), args.at(4)];
        move_item(state, [args.at(1), args.at(2)], ends, &words)
    })
}

pub(crate) fn brpoplpush(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    move_or_wait(state, args, 3, |state, args| {
        let words: [&[u8]; 3] = [b"RPOPLPUSH", args.at(1), args.at(2)];
        move_item(state, [args.at(1), args.at(2)], [End::Last, End::First], &words)
    })
}

/// Moves an item by `step`, or waits for one. `timeout` is the place of the timeout among the arguments.
fn move_or_wait(
    state: &mut State,
    args: Args<'_>,
    timeout: usize,
    step: fn(&mut State, Args<'_>) -> Result<Reply, Reply>,
) -> Result<Reply, Reply> {
    let deadline = deadline(state, args.at(timeout))?;
    if state.read::<List>(args.at(1))?.is_some() {
        return step(state, args);
    }
    let serve = match timeout {
        3 => |state: &mut State, key: &[u8], args: Args<'_>| serve_move(state, key, args, brpoplpush),
        _ => |state: &mut State, key: &[u8], args: Args<'_>| serve_move(state, key, args, blmove),
    };
    Ok(state.wait(Wish::new([args.at(1)].into_iter(), args, serve, deadline), Reply::Nil))
}

/// Runs the command again, now that there is an item. An error on the other list is the client's reply.
fn serve_move(
    state: &mut State,
    key: &[u8],
    args: Args<'_>,
    run: fn(&mut State, Args<'_>) -> Result<Reply, Reply>,
) -> Option<Reply> {
    state.read::<List>(key).ok().flatten()?;
    Some(run(state, args).unwrap_or_else(|error| error))
}
