//! ZADD and ZINCRBY.

use super::super::{SYNTAX_ERROR, words};
use crate::servers::redis::events::{Class, Event};
use crate::servers::redis::number::{NOT_A_FLOAT, parse_f64};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::SortedSet;

pub(crate) fn zadd(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    add(state, args, Options::default())
}

pub(crate) fn zincrby(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    add(state, args, Options { increments: true, ..Options::default() })
}

/// The options of ZADD.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    /// NX: changes no score.
    only_new: bool,
    /// XX: adds no member.
    only_present: bool,
    /// GT: changes scores to larger ones only.
    only_larger: bool,
    /// LT: changes scores to smaller ones only.
    only_smaller: bool,
    /// CH: counts changed scores, too.
    counts_changed: bool,
    /// INCR: adds to the score.
    increments: bool,
}

/// The outcome for one member.
enum Outcome {
    Added(f64),
    Changed(f64),
    /// The score is the same as before.
    Kept(f64),
    /// The options forbid a change.
    Refused,
}

fn add(state: &mut State, args: Args<'_>, mut options: Options) -> Result<Reply, Reply> {
    let rest = options.parse(args.skip(2));
    if rest.is_empty() || !rest.len().is_multiple_of(2) {
        return Err(Reply::error(SYNTAX_ERROR));
    }
    options.check(rest.len() / 2)?;
    let score = |at| parse_f64(rest.at(at)).ok_or(Reply::error(NOT_A_FLOAT));
    let scores = (0..rest.len()).step_by(2).map(score).collect::<Result<Vec<_>, _>>()?;
    if state.read::<SortedSet>(args.at(1))?.is_none() && options.only_present {
        return Ok(if options.increments { Reply::Nil } else { Reply::Integer(0) });
    }
    let set: &mut SortedSet = state.edit_or_create(args.at(1))?;
    let (mut added, mut changed, mut last) = (0, 0, None);
    for (score, at) in scores.into_iter().zip((1..).step_by(2)) {
        last = match options.apply(set, rest.at(at), score)? {
            Outcome::Added(score) => {
                added += 1;
                Some(score)
            }
            Outcome::Changed(score) => {
                changed += 1;
                Some(score)
            }
            Outcome::Kept(score) => Some(score),
            Outcome::Refused => None,
        };
    }
    if added + changed > 0 {
        let event = if options.increments { "zincr" } else { "zadd" };
        state.changed(args.at(1), Event(Class::SortedSet, event), &words(args));
    }
    Ok(match last {
        Some(score) if options.increments => Reply::Double(score),
        None if options.increments => Reply::Nil,
        _ => Reply::count(if options.counts_changed { added + changed } else { added }),
    })
}

impl Options {
    /// Reads the options, and returns the arguments after them.
    fn parse<'a>(&mut self, args: Args<'a>) -> Args<'a> {
        for (at, word) in args.iter().enumerate() {
            *match word.to_ascii_lowercase().as_slice() {
                b"nx" => &mut self.only_new,
                b"xx" => &mut self.only_present,
                b"gt" => &mut self.only_larger,
                b"lt" => &mut self.only_smaller,
                b"ch" => &mut self.counts_changed,
                b"incr" => &mut self.increments,
                _ => return args.skip(at),
            } = true;
        }
        args.skip(args.len())
    }

    fn check(&self, members: usize) -> Result<(), Reply> {
        if self.only_new && self.only_present {
            return Err(Reply::error("ERR XX and NX options at the same time are not compatible"));
        }
        if [self.only_new, self.only_larger, self.only_smaller].into_iter().filter(|is_set| *is_set).count()
            > 1
        {
            return Err(Reply::error("ERR GT, LT, and/or NX options at the same time are not compatible"));
        }
        if self.increments && members > 1 {
            return Err(Reply::error("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    fn apply(&self, set: &mut SortedSet, member: &[u8], score: f64) -> Result<Outcome, Reply> {
        let Some(former) = set.score(member) else {
            if self.only_present {
                return Ok(Outcome::Refused);
            }
            set.set(member, score);
            return Ok(Outcome::Added(score));
        };
        if self.only_new {
            return Ok(Outcome::Refused);
        }
        let score = if self.increments { former + score } else { score };
        if score.is_nan() {
            return Err(Reply::error("ERR resulting score is not a number (NaN)"));
        }
        if (self.only_smaller && score >= former) || (self.only_larger && score <= former) {
            return Ok(Outcome::Refused);
        }
        if score == former {
            return Ok(Outcome::Kept(score));
        }
        set.set(member, score);
        Ok(Outcome::Changed(score))
    }
}
