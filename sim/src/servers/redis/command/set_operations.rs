//! Unions, intersections and differences of sets. Source: `t_set.c` of Redis 7.0.

use super::ranges::{parse_key_count, parse_within};
use super::{SYNTAX_ERROR, words};
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Set, Value};

pub(super) fn sunion(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args.skip(1), union)
}

pub(super) fn sinter(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args.skip(1), intersection)
}

pub(super) fn sdiff(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args.skip(1), difference)
}

pub(super) fn sunionstore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    store(state, args, union, "sunionstore")
}

pub(super) fn sinterstore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    store(state, args, intersection, "sinterstore")
}

pub(super) fn sdiffstore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    store(state, args, difference, "sdiffstore")
}

pub(super) fn sintercard(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let count = parse_key_count(args.at(1), "ERR numkeys should be greater than 0")?;
    if count > args.len() - 2 {
        return Err(Reply::error("ERR Number of keys can't be greater than number of args"));
    }
    let mut limit = 0;
    let options = args.skip(2 + count);
    for at in (0..options.len()).step_by(2) {
        if !options.at(at).eq_ignore_ascii_case(b"limit") || at + 1 == options.len() {
            return Err(Reply::error(SYNTAX_ERROR));
        }
        limit = parse_within(options.at(at + 1), 0..=i64::MAX, Some("ERR LIMIT can't be negative"))?;
    }
    let found = intersection(sets(state, args.skip(2).take(count))?).len() as i64;
    Ok(Reply::Integer(if limit == 0 { found } else { found.min(limit) }))
}

fn answer(state: &mut State, keys: Args<'_>, combine: fn(Vec<Option<Set>>) -> Set) -> Result<Reply, Reply> {
    let members = combine(sets(state, keys)?).members();
    Ok(Reply::Set(members.into_iter().map(Reply::Bulk).collect()))
}

/// Stores the result; an empty one removes the key.
fn store(
    state: &mut State,
    args: Args<'_>,
    combine: fn(Vec<Option<Set>>) -> Set,
    event: &'static str,
) -> Result<Reply, Reply> {
    let result = combine(state.reading(|state| sets(state, args.skip(2)))?);
    let count = result.len();
    state.lookup(args.at(1));
    let (result, event) = (Value::Set(Box::new(result)), Event(Class::Set, event));
    state.as_command(&words(args), |state| state.replace(args.at(1), result, event));
    Ok(Reply::count(count))
}

/// Returns the sets of all keys; `None` for a missing one.
fn sets(state: &mut State, keys: Args<'_>) -> Result<Vec<Option<Set>>, Reply> {
    keys.iter().map(|key| Ok(state.read::<Set>(key)?.cloned())).collect()
}

fn union(sets: Vec<Option<Set>>) -> Set {
    collected(sets.into_iter().flatten().flat_map(|set| set.members()))
}

fn intersection(sets: Vec<Option<Set>>) -> Set {
    let Some(mut sets) = sets.into_iter().collect::<Option<Vec<_>>>() else { return Set::default() };
    // The members of an intersection are found in the smallest set, in its order.
    sets.sort_by_key(Set::len);
    let Some((smallest, others)) = sets.split_first() else { return Set::default() };
    let is_common = |member: &[u8]| others.iter().all(|other| other.contains(member));
    collected(smallest.members().into_iter().filter(|member| is_common(member)))
}

fn difference(sets: Vec<Option<Set>>) -> Set {
    let Some((Some(first), others)) = sets.split_first() else { return Set::default() };
    let is_left = |member: &[u8]| !others.iter().flatten().any(|other| other.contains(member));
    collected(first.members().into_iter().filter(|member| is_left(member)))
}

fn collected(members: impl Iterator<Item = std::sync::Arc<[u8]>>) -> Set {
    let mut set = Set::default();
    members.for_each(|member| _ = set.add(&member));
    set
}
