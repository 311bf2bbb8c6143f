//! Commands that look for an item: LPOS, LREM and LINSERT.

use super::super::ranges::{parse_integer, parse_within};
use super::super::{SYNTAX_ERROR, words};
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::List;

pub(crate) fn lrem(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let count = parse_integer(args.at(2))?;
    let Some(list) = state.edit::<List>(args.at(1))? else { return Ok(Reply::Integer(0)) };
    let wanted = if count == 0 { u64::MAX } else { count.unsigned_abs() };
    let mut removed = 0;
    let mut keep = |item: &[u8]| {
        let is_removed = removed < wanted && *item == *args.at(3);
        removed += u64::from(is_removed);
        !is_removed
    };
    if count < 0 {
        let mut kept: Vec<_> = list.items.drain(..).rev().filter(|item| keep(item)).collect();
        kept.reverse();
        list.items = kept.into();
    } else {
        list.items.retain(|item| keep(item));
    }
    if removed > 0 {
        state.changed(args.at(1), Event(Class::List, "lrem"), &words(args));
    }
    Ok(Reply::Integer(removed.cast_signed()))
}

pub(crate) fn linsert(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let after = match args.at(2).to_ascii_lowercase().as_slice() {
        b"after" => 1,
        b"before" => 0,
        _ => return Err(Reply::error(SYNTAX_ERROR)),
    };
    let Some(list) = state.edit::<List>(args.at(1))? else { return Ok(Reply::Integer(0)) };
    let Some(place) = list.items.iter().position(|item| **item == *args.at(3)) else {
        return Ok(Reply::Integer(-1));
    };
    list.items.insert(place + after, args.at(4).into());
    let length = list.items.len();
    state.changed(args.at(1), Event(Class::List, "linsert"), &words(args));
    Ok(Reply::count(length))
}

pub(crate) fn lpos(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let search = Search::parse(args.skip(3))?;
    let Some(list) = state.read::<List>(args.at(1))? else { return Ok(search.none()) };
    let found = search.places(list, args.at(2)).skip(search.skipped()).take(search.wanted());
    let mut found = found.map(Reply::count);
    Ok(match search.count {
        None => found.next().unwrap_or_default(),
        Some(_) => Reply::Array(found.collect()),
    })
}

/// The options of LPOS.
struct Search {
    rank: i64,
    count: Option<usize>,
    /// The number of items that are looked at.
    most: usize,
}

impl Search {
    fn parse(args: Args<'_>) -> Result<Self, Reply> {
        let mut search = Self { rank: 1, count: None, most: usize::MAX };
        let size = |text, error| {
            let number = parse_within(text, 0..=i64::MAX, Some(error))?;
            Ok(usize::try_from(number).unwrap_or(usize::MAX))
        };
        for at in (0..args.len()).step_by(2) {
            let value = args.skip(at + 1).iter().next().ok_or(Reply::error(SYNTAX_ERROR))?;
            match args.at(at).to_ascii_lowercase().as_slice() {
                b"rank" => search.rank = rank(value)?,
                b"count" => search.count = Some(size(value, "ERR COUNT can't be negative")?),
                b"maxlen" => match size(value, "ERR MAXLEN can't be negative")? {
                    0 => search.most = usize::MAX,
                    most => search.most = most,
                },
                _ => return Err(Reply::error(SYNTAX_ERROR)),
            }
        }
        Ok(search)
    }

    /// Returns the number of matches before the first that is wanted.
    fn skipped(&self) -> usize {
        // Redis negates the rank; the smallest number has no negative.
        let rank = self.rank.checked_abs().unwrap_or(1);
        usize::try_from(rank).unwrap_or(usize::MAX) - 1
    }

    /// Returns the most matches that are wanted.
    fn wanted(&self) -> usize {
        match self.count {
            None => 1,
            Some(count) if count > 0 && self.rank != i64::MIN => count,
            Some(_) => usize::MAX,
        }
    }

    /// Returns the reply if there is no list.
    fn none(&self) -> Reply {
        self.count.map_or(Reply::Nil, |_| Reply::Array(Vec::new()))
    }

    /// Returns the places of `wanted`, in the direction of the search.
    fn places<'a>(&self, list: &'a List, wanted: &'a [u8]) -> Box<dyn Iterator<Item = usize> + 'a> {
        let items = list.items.iter().enumerate();
        let is_wanted =
            move |(place, item): (usize, &std::sync::Arc<[u8]>)| (**item == *wanted).then_some(place);
        if self.rank < 0 {
            Box::new(items.rev().take(self.most).filter_map(is_wanted))
        } else {
            Box::new(items.take(self.most).filter_map(is_wanted))
        }
    }
}

fn rank(text: &[u8]) -> Result<i64, Reply> {
    match parse_integer(text)? {
        0 => Err(Reply::error(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative \
             to start from the end of the list",
        )),
        rank => Ok(rank),
    }
}
