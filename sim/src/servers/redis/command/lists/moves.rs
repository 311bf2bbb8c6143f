//! LMOVE and RPOPLPUSH.

use super::super::words;
use super::{parse_end, popped, pushed};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{End, List};

pub(crate) fn lmove(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let ends = [parse_end(args.at(3))?, parse_end(args.at(4))?];
    move_item(state, [args.at(1), args.at(2)], ends, &words(args))
}

pub(crate) fn rpoplpush(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    move_item(state, [args.at(1), args.at(2)], [End::Last, End::First], &words(args))
}

/// Moves an item from an end of one list to an end of another, and returns the item. Repeated as the command
/// `words`.
pub(super) fn move_item(
    state: &mut State,
    [from, to]: [&[u8]; 2],
    [taken, added]: [End; 2],
    words: &[&[u8]],
) -> Result<Reply, Reply> {
    if state.read::<List>(from)?.is_none() {
        return Ok(Reply::Nil);
    }
    state.read::<List>(to)?;
    let Some(item) = state.edit::<List>(from)?.and_then(|list| list.pop(taken)) else {
        return Ok(Reply::Nil);
    };
    state.edit_or_create::<List>(to)?.push(added, item.clone());
    state.notify(pushed(added), to);
    state.notify(popped(taken), from);
    state.as_command(words, |state| {
        state.touch(from);
        if from != to {
            state.touch(to);
        }
    });
    Ok(Reply::Bulk(item))
}
