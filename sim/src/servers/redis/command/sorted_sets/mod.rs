//! Commands on sorted sets. Source: `t_zset.c` of Redis 7.0.

mod add;
mod blocking;
mod bounds;
mod combine;
mod pop;
mod random;
mod range;
mod remove;

use super::words;
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Scored, SortedSet};

pub(super) use add::{zadd, zincrby};
pub(super) use blocking::{bzmpop, bzpopmax, bzpopmin};
pub(super) use combine::{zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore};
pub(super) use pop::{zmpop, zpopmax, zpopmin};
pub(super) use random::zrandmember;
pub(super) use range::{
    zcount, zlexcount, zrange, zrangebylex, zrangebyscore, zrangestore, zrevrange, zrevrangebylex,
    zrevrangebyscore,
};
pub(super) use remove::{zremrangebylex, zremrangebyrank, zremrangebyscore};

pub(super) fn zrem(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let Some(set) = state.edit::<SortedSet>(args.at(1))? else { return Ok(Reply::Integer(0)) };
    let removed = args.skip(2).iter().filter(|member| set.remove(member)).count();
    if removed > 0 {
        state.changed(args.at(1), Event(Class::SortedSet, "zrem"), &words(args));
    }
    Ok(Reply::count(removed))
}

pub(super) fn zcard(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(state.read(args.at(1))?.map_or(0, SortedSet::len)))
}

pub(super) fn zscore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let set: Option<&SortedSet> = state.read(args.at(1))?;
    Ok(score(set, args.at(2)))
}

pub(super) fn zmscore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let set: Option<&SortedSet> = state.read(args.at(1))?;
    Ok(Reply::Array(args.skip(2).iter().map(|member| score(set, member)).collect()))
}

fn score(set: Option<&SortedSet>, member: &[u8]) -> Reply {
    set.and_then(|set| set.score(member)).map_or(Reply::Nil, Reply::Double)
}

pub(super) fn zrank(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let set: Option<&SortedSet> = state.read(args.at(1))?;
    Ok(set.and_then(|set| set.rank(args.at(2))).map_or(Reply::Nil, Reply::count))
}

pub(super) fn zrevrank(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let set: Option<&SortedSet> = state.read(args.at(1))?;
    let rank = set.and_then(|set| Some(set.len() - 1 - set.rank(args.at(2))?));
    Ok(rank.map_or(Reply::Nil, Reply::count))
}

/// Returns members, or pairs of members and scores.
fn listed<'a>(items: impl Iterator<Item = &'a Scored>, with_scores: bool) -> Reply {
    if with_scores {
        return Reply::Nested(items.map(pair).collect());
    }
    Reply::texts(items.map(|item| item.member.clone()))
}

fn pair(item: &Scored) -> (Reply, Reply) {
    (Reply::Bulk(item.member.clone()), Reply::Double(item.score))
}
