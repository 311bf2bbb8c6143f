//! ZRANGE in all its forms, and counts of ranges.

use std::ops::Range;

use super::super::ranges::{parse_integer, places};
use super::super::{SYNTAX_ERROR, words};
use super::bounds::Bounds;
use super::listed;
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Scored, SortedSet, Value};

pub(crate) fn zrange(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args, Query::default())
}

pub(crate) fn zrevrange(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args, Query { by: Some(By::Rank), is_reversed: Some(true), ..Query::default() })
}

pub(crate) fn zrangebyscore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args, Query { by: Some(By::Score), is_reversed: Some(false), ..Query::default() })
}

pub(crate) fn zrevrangebyscore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args, Query { by: Some(By::Score), is_reversed: Some(true), ..Query::default() })
}

pub(crate) fn zrangebylex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args, Query { by: Some(By::Member), is_reversed: Some(false), ..Query::default() })
}

pub(crate) fn zrevrangebylex(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args, Query { by: Some(By::Member), is_reversed: Some(true), ..Query::default() })
}

pub(crate) fn zrangestore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let mut query = Query { stores: true, ..Query::default() };
    let found = state.reading(|state| query.run(state, args.skip(2)))?;
    let mut result = SortedSet::default();
    found.iter().for_each(|item| _ = result.set(&item.member, item.score));
    state.lookup(args.at(1));
    let (result, event) = (Value::SortedSet(Box::new(result)), Event(Class::SortedSet, "zrangestore"));
    state.as_command(&words(args), |state| state.replace(args.at(1), result, event));
    Ok(Reply::count(found.len()))
}

pub(crate) fn zcount(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    count(state, args, Bounds::scores(args.at(2), args.at(3))?)
}

pub(crate) fn zlexcount(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    count(state, args, Bounds::members(args.at(2), args.at(3))?)
}

fn count(state: &mut State, args: Args<'_>, bounds: Bounds<'_>) -> Result<Reply, Reply> {
    let set: Option<&SortedSet> = state.read(args.at(1))?;
    Ok(Reply::count(set.map_or(0, |set| bounds.find(set.items()).len())))
}

fn answer(state: &mut State, args: Args<'_>, mut query: Query) -> Result<Reply, Reply> {
    let found = query.run(state, args.skip(1))?;
    Ok(listed(found.iter(), query.with_scores))
}

/// The meaning of a range's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Member,
}

/// The command and its options.
#[derive(Debug, Default)]
struct Query {
    /// `None`: the options decide.
    by: Option<By>,
    is_reversed: Option<bool>,
    with_scores: bool,
    stores: bool,
    /// The offset and the number of members; a negative number means all.
    limit: Option<(i64, i64)>,
}

impl Query {
    /// Reads the options after the key and the ends of the range in `args`, and returns the members.
    fn run(&mut self, state: &mut State, args: Args<'_>) -> Result<Vec<Scored>, Reply> {
        self.parse(args.skip(3))?;
        let by = self.by.unwrap_or(By::Rank);
        let is_reversed = self.is_reversed.unwrap_or(false);
        if by == By::Rank && self.limit.is_some_and(|(_, count)| count != -1) {
            return Err(Reply::error(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if by == By::Member && self.with_scores {
            return Err(Reply::error("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        let (mut start, mut end) = (args.at(1), args.at(2));
        if is_reversed && by != By::Rank {
            std::mem::swap(&mut start, &mut end);
        }
        let bounds = match by {
            By::Rank => {
                let (start, end) = (parse_integer(start)?, parse_integer(end)?);
                let Some(set) = state.read::<SortedSet>(args.at(0))? else { return Ok(Vec::new()) };
                let found = places(start, end, set.len());
                let length = set.len();
                let found = if is_reversed { length - found.end..length - found.start } else { found };
                return Ok(in_order(set.items(), found, is_reversed));
            }
            By::Score => Bounds::scores(start, end)?,
            By::Member => Bounds::members(start, end)?,
        };
        let Some(set) = state.read::<SortedSet>(args.at(0))? else { return Ok(Vec::new()) };
        let items = set.items();
        let found = if is_reversed { bounds.find_backwards(items) } else { bounds.find(items) };
        Ok(self.limited(in_order(items, found, is_reversed)))
    }

    fn parse(&mut self, args: Args<'_>) -> Result<(), Reply> {
        let mut at = 0;
        while at < args.len() {
            match args.at(at).to_ascii_lowercase().as_slice() {
                b"withscores" if !self.stores => self.with_scores = true,
                b"limit" if at + 2 < args.len() => {
                    self.limit = Some((parse_integer(args.at(at + 1))?, parse_integer(args.at(at + 2))?));
                    at += 2;
                }
                b"rev" if self.is_reversed.is_none() => self.is_reversed = Some(true),
                b"bylex" if self.by.is_none() => self.by = Some(By::Member),
                b"byscore" if self.by.is_none() => self.by = Some(By::Score),
                _ => return Err(Reply::error(SYNTAX_ERROR)),
            }
            at += 1;
        }
        Ok(())
    }

    fn limited(&self, found: Vec<Scored>) -> Vec<Scored> {
        let Some((offset, count)) = self.limit else { return found };
        // A negative offset skips all members, as in Redis.
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        found.into_iter().skip(offset).take(count).collect()
    }
}

fn in_order(items: &[Scored], range: Range<usize>, is_reversed: bool) -> Vec<Scored> {
    let mut found = items[range].to_vec();
    if is_reversed {
        found.reverse();
    }
    found
}
