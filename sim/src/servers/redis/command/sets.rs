//! Commands on a set. Source: `t_set.c` of Redis 7.0.

use super::ranges::{parse_count, parse_within};
use super::{SYNTAX_ERROR, choices, words};
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::Set;

const SADD: Event = Event(Class::Set, "sadd");
const SPOP: Event = Event(Class::Set, "spop");
const SREM: Event = Event(Class::Set, "srem");

pub(super) fn sadd(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let set: &mut Set = state.edit_or_create(args.at(1))?;
    let added = args.skip(2).iter().filter(|member| set.add(member)).count();
    if added > 0 {
        state.changed(args.at(1), SADD, &words(args));
    }
    Ok(Reply::count(added))
}

pub(super) fn srem(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let Some(set) = state.edit::<Set>(args.at(1))? else { return Ok(Reply::Integer(0)) };
    let removed = args.skip(2).iter().filter(|member| set.remove(member)).count();
    if removed > 0 {
        state.changed(args.at(1), SREM, &words(args));
    }
    Ok(Reply::count(removed))
}

pub(super) fn smove(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (from, to, member) = (args.at(1), args.at(2), args.at(3));
    if state.lookup(from).is_none() {
        return Ok(Reply::Integer(0));
    }
    let is_member = state.read::<Set>(from)?.is_some_and(|set| set.contains(member));
    state.read::<Set>(to)?;
    if from == to || !is_member {
        return Ok(Reply::Integer(is_member.into()));
    }
    state.edit::<Set>(from)?.map(|set| set.remove(member));
    state.notify(SREM, from);
    state.as_command(&words(args), |state| {
        state.touch(from);
        if state.edit_or_create::<Set>(to)?.add(member) {
            state.notify(SADD, to);
        }
        state.touch(to);
        Ok(Reply::Integer(1))
    })
}

pub(super) fn smembers(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let members = state.read(args.at(1))?.map_or_else(Vec::new, Set::members);
    Ok(Reply::Set(members.into_iter().map(Reply::Bulk).collect()))
}

pub(super) fn sismember(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let set: Option<&Set> = state.read(args.at(1))?;
    Ok(Reply::Integer(set.is_some_and(|set| set.contains(args.at(2))).into()))
}

pub(super) fn smismember(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let set: Option<&Set> = state.read(args.at(1))?;
    let found = |member| Reply::Integer(set.is_some_and(|set| set.contains(member)).into());
    Ok(Reply::Array(args.skip(2).iter().map(found).collect()))
}

pub(super) fn scard(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(state.read(args.at(1))?.map_or(0, Set::len)))
}

/// SPOP: repeated as SREM, or as DEL if it takes all members.
pub(super) fn spop(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let key = args.at(1);
    let count = match args.len() {
        2 => None,
        3 => Some(parse_count(args.at(2))?),
        _ => return Err(Reply::error(SYNTAX_ERROR)),
    };
    let members = state.read(key)?.map_or_else(Vec::new, Set::members);
    if members.is_empty() || count == Some(0) {
        return Ok(if count.is_some() { Reply::Set(Vec::new()) } else { Reply::Nil });
    }
    if count.is_some_and(|count| count >= members.len()) {
        state.notify(SPOP, key);
        state.as_command(&[b"DEL", key], |state| state.clear(key));
        return Ok(Reply::Set(members.into_iter().map(Reply::Bulk).collect()));
    }
    let wanted = i64::try_from(count.unwrap_or(1)).unwrap_or(i64::MAX);
    let chosen = choices::choose(&mut state.choices, members.len(), wanted);
    let popped: Vec<_> = chosen.into_iter().map(|at| members[at].clone()).collect();
    if let Some(set) = state.edit::<Set>(key)? {
        popped.iter().for_each(|member| _ = set.remove(member));
    }
    let mut repeated: Vec<&[u8]> = vec![b"SREM", key];
    repeated.extend(popped.iter().map(|member| &**member));
    state.changed(key, SPOP, &repeated);
    let mut popped = popped.iter().cloned().map(Reply::Bulk);
    Ok(if count.is_some() { Reply::Set(popped.collect()) } else { popped.next().unwrap_or_default() })
}

pub(super) fn srandmember(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let count = match args.len() {
        2 => None,
        3 => Some(parse_within(args.at(2), -i64::MAX..=i64::MAX, None)?),
        _ => return Err(Reply::error(SYNTAX_ERROR)),
    };
    let members = state.read(args.at(1))?.map_or_else(Vec::new, Set::members);
    let chosen = choices::choose(&mut state.choices, members.len(), count.unwrap_or(1));
    let mut chosen = chosen.into_iter().map(|at| Reply::Bulk(members[at].clone()));
    Ok(match count {
        None => chosen.next().unwrap_or_default(),
        Some(_) => Reply::Array(chosen.collect()),
    })
}
