//! Unions, intersections and differences of sorted sets and sets. Source: `zunionInterDiffGenericCommand` of
//! Redis 7.0.

use std::collections::BTreeMap;

use super::super::ranges::{parse_integer, parse_within};
use super::super::{SYNTAX_ERROR, words};
use super::listed;
use crate::servers::redis::access::WRONG_TYPE;
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::number::parse_f64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Scored, SortedSet, Value};

pub(crate) fn zunion(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args, Operation::Union, "zunion")
}

pub(crate) fn zinter(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args, Operation::Intersection, "zinter")
}

pub(crate) fn zdiff(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    answer(state, args, Operation::Difference, "zdiff")
}

pub(crate) fn zunionstore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    store(state, args, Operation::Union, "zunionstore")
}

pub(crate) fn zinterstore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    store(state, args, Operation::Intersection, "zinterstore")
}

pub(crate) fn zdiffstore(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    store(state, args, Operation::Difference, "zdiffstore")
}

pub(crate) fn zintercard(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let form = Form { name: "zintercard", shows_scores: false, counts: true };
    let query = Query::read(state, args.skip(1), Operation::Intersection, &form)?;
    let found = query.result().len();
    Ok(Reply::count(if query.limit == 0 { found } else { found.min(query.limit) }))
}

fn answer(
    state: &mut State,
    args: Args<'_>,
    operation: Operation,
    name: &'static str,
) -> Result<Reply, Reply> {
    let form = Form { name, shows_scores: true, counts: false };
    let query = Query::read(state, args.skip(1), operation, &form)?;
    Ok(listed(query.result().items().iter(), query.with_scores))
}

/// Stores the result; an empty one removes the key.
fn store(
    state: &mut State,
    args: Args<'_>,
    operation: Operation,
    name: &'static str,
) -> Result<Reply, Reply> {
    let form = Form { name, shows_scores: false, counts: false };
    let query = state.reading(|state| Query::read(state, args.skip(2), operation, &form))?;
    let result = query.result().resized();
    let count = result.len();
    state.lookup(args.at(1));
    let (result, event) = (Value::SortedSet(Box::new(result)), Event(Class::SortedSet, name));
    state.as_command(&words(args), |state| state.replace(args.at(1), result, event));
    Ok(Reply::count(count))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// The form of the command.
struct Form {
    name: &'static str,
    /// It takes WITHSCORES.
    shows_scores: bool,
    /// It takes LIMIT, and neither weights nor scores.
    counts: bool,
}

/// The score of a member that is in several sets.
#[derive(Clone, Copy, Debug, Default)]
enum Aggregate {
    #[default]
    Sum,
    Least,
    Most,
}

/// A set that is read, with the factor of its scores.
struct Source {
    set: SortedSet,
    weight: f64,
}

struct Query {
    operation: Operation,
    sources: Vec<Source>,
    aggregate: Aggregate,
    with_scores: bool,
    limit: usize,
}

impl Query {
    /// Reads the arguments from the number of keys on, and the sets.
    fn read(state: &mut State, args: Args<'_>, operation: Operation, form: &Form) -> Result<Self, Reply> {
        let keys = parse_integer(args.at(0))?;
        if keys < 1 {
            let text = format!("ERR at least 1 input key is needed for '{}' command", form.name);
            return Err(Reply::error_text(text));
        }
        let keys = usize::try_from(keys).ok().filter(|keys| *keys < args.len());
        let keys = keys.ok_or(Reply::error(SYNTAX_ERROR))?;
        let sources = args.skip(1).take(keys).iter().map(|key| Source::read(state, key));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let mut query = Self { operation, sources, aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
        let mut rest = args.skip(1 + keys);
        while !rest.is_empty() {
            rest = query.read_option(rest, form)?;
        }
        Ok(query)
    }

    /// Reads one option, and returns the arguments after it.
    fn read_option<'a>(&mut self, args: Args<'a>, form: &Form) -> Result<Args<'a>, Reply> {
        let weighs = self.operation != Operation::Difference && !form.counts;
        match args.at(0).to_ascii_lowercase().as_slice() {
            b"weights" if weighs && args.len() > self.sources.len() => {
                for (source, text) in self.sources.iter_mut().zip(args.skip(1).iter()) {
                    source.weight = parse_f64(text).ok_or(Reply::error("ERR weight value is not a float"))?;
                }
                Ok(args.skip(1 + self.sources.len()))
            }
            b"aggregate" if weighs && args.len() > 1 => {
                self.aggregate = match args.at(1).to_ascii_lowercase().as_slice() {
                    b"sum" => Aggregate::Sum,
                    b"min" => Aggregate::Least,
                    b"max" => Aggregate::Most,
                    _ => return Err(Reply::error(SYNTAX_ERROR)),
                };
                Ok(args.skip(2))
            }
            b"withscores" if form.shows_scores => {
                self.with_scores = true;
                Ok(args.skip(1))
            }
            b"limit" if form.counts && args.len() > 1 => {
                let limit = parse_within(args.at(1), 0..=i64::MAX, Some("ERR LIMIT can't be negative"))?;
                self.limit = usize::try_from(limit).unwrap_or(usize::MAX);
                Ok(args.skip(2))
            }
            _ => Err(Reply::error(SYNTAX_ERROR)),
        }
    }

    fn result(&self) -> SortedSet {
        let mut sources: Vec<&Source> = self.sources.iter().collect();
        if self.operation != Operation::Difference {
            // The order of the summands decides on the last bit of a sum.
            sources.sort_by_key(|source| source.set.len());
        }
        let mut result = SortedSet::large();
        let Some((first, others)) = sources.split_first() else { return result };
        match self.operation {
            Operation::Union => {
                let mut scores = BTreeMap::new();
                for (member, score) in sources.iter().flat_map(|source| source.weighted()) {
                    let sum = |former: &mut f64| *former = self.aggregate.of(*former, score);
                    scores.entry(member).and_modify(sum).or_insert(score);
                }
                scores.iter().for_each(|(member, score)| _ = result.set(member, *score));
            }
            Operation::Intersection => {
                for (member, score) in first.weighted() {
                    let scores: Option<Vec<_>> = others.iter().map(|other| other.score(member)).collect();
                    let Some(scores) = scores else { continue };
                    let score = scores.into_iter().fold(score, |sum, score| self.aggregate.of(sum, score));
                    result.set(member, score);
                }
            }
            Operation::Difference => {
                let is_left = |member: &[u8]| others.iter().all(|other| other.set.score(member).is_none());
                let left = first.set.items().iter().filter(|item| is_left(&item.member));
                left.for_each(|item| _ = result.set(&item.member, item.score));
            }
        }
        result
    }
}

impl Source {
    /// Reads a sorted set or a set, whose members have the score 1.
    fn read(state: &mut State, key: &[u8]) -> Result<Self, Reply> {
        let set = match state.lookup(key).map(|entry| &entry.value) {
            None => SortedSet::default(),
            Some(Value::SortedSet(set)) => (**set).clone(),
            Some(Value::Set(members)) => {
                let mut set = SortedSet::default();
                members.members().iter().for_each(|member| _ = set.set(member, 1.0));
                set
            }
            Some(_) => return Err(Reply::error(WRONG_TYPE)),
        };
        Ok(Self { set, weight: 1.0 })
    }

    fn weighted(&self) -> impl Iterator<Item = (&[u8], f64)> {
        self.set.items().iter().map(|Scored { member, score }| (&**member, or_zero(self.weight * score)))
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        self.set.score(member).map(|score| self.weight * score)
    }
}

impl Aggregate {
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Sum => or_zero(one + other),
            Self::Least => {
                if other < one {
                    other
                } else {
                    one
                }
            }
            Self::Most => {
                if other > one {
                    other
                } else {
                    one
                }
            }
        }
    }
}

/// Replaces NaN, which no score is, by 0.
fn or_zero(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number }
}
