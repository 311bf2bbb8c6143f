//! RENAME and RENAMENX. Source: `db.c` of Redis 7.0.

use super::{NO_SUCH_KEY, words};
use crate::servers::redis::effects::Removal;
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;

pub(super) fn rename(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    change_name(state, args, true)?;
    Ok(Reply::OK)
}

pub(super) fn renamenx(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::Integer(change_name(state, args, false)?.into()))
}

/// Renames a key with its expiry. Returns false if the new name is taken and may not be replaced.
fn change_name(state: &mut State, args: Args<'_>, replaces: bool) -> Result<bool, Reply> {
    let (from, to) = (args.at(1), args.at(2));
    let entry = state.lookup(from).cloned().ok_or(Reply::error(NO_SUCH_KEY))?;
    if from == to {
        return Ok(false);
    }
    if state.lookup(to).is_some() && !replaces {
        return Ok(false);
    }
    state.as_command(&words(args), |state| {
        state.remove(from, Removal::Deleted);
        state.remove(to, Removal::Deleted);
        state.put(to, entry);
    });
    state.notify(Event(Class::Generic, "rename_from"), from);
    state.notify(Event(Class::Generic, "rename_to"), to);
    Ok(true)
}
