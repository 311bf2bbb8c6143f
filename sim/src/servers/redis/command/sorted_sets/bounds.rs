//! Ranges of scores and of members. Source: `zslParseRange` and `zslParseLexRange` of Redis 7.0.

use std::ops::Range;

use crate::servers::redis::number::strtod;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::value::Scored;

/// A range of a sorted set.
pub(super) enum Bounds<'a> {
    Scores(Edge<f64>, Edge<f64>),
    Members(Edge<Lex<'a>>, Edge<Lex<'a>>),
}

/// One end of a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge<T> {
    at: T,
    is_excluded: bool,
}

/// A member, or the end of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lex<'a> {
    Lowest,
    Member(&'a [u8]),
    Highest,
}

impl<'a> Bounds<'a> {
    pub(super) fn scores(least: &[u8], most: &[u8]) -> Result<Self, Reply> {
        let edges = score_edge(least).zip(score_edge(most));
        let (least, most) = edges.ok_or(Reply::error("ERR min or max is not a float"))?;
        Ok(Self::Scores(least, most))
    }

    pub(super) fn members(least: &'a [u8], most: &'a [u8]) -> Result<Self, Reply> {
        let edges = member_edge(least).zip(member_edge(most));
        let (least, most) = edges.ok_or(Reply::error("ERR min or max not valid string range item"))?;
        Ok(Self::Members(least, most))
    }

    /// Returns the places in the range, looking for its first one.
    ///
    /// If members have different scores, a range of members depends on the direction of the search.
    pub(super) fn find(&self, items: &[Scored]) -> Range<usize> {
        if !self.may_contain(items) {
            return 0..0;
        }
        let start = items.iter().position(|item| self.starts_before(item)).unwrap_or(items.len());
        let length = items[start..].iter().take_while(|item| self.ends_after(item)).count();
        start..start + length
    }

    /// As [`Bounds::find`], looking for the last place first.
    pub(super) fn find_backwards(&self, items: &[Scored]) -> Range<usize> {
        if !self.may_contain(items) {
            return 0..0;
        }
        let end = items.iter().rposition(|item| self.ends_after(item)).map_or(0, |last| last + 1);
        let length = items[..end].iter().rev().take_while(|item| self.starts_before(item)).count();
        end - length..end
    }

    fn may_contain(&self, items: &[Scored]) -> bool {
        let is_empty = match self {
            Self::Scores(least, most) => is_empty(least, most),
            Self::Members(least, most) => is_empty(least, most),
        };
        let (Some(first), Some(last)) = (items.first(), items.last()) else { return false };
        !is_empty && self.ends_after(first) && self.starts_before(last)
    }

    /// Returns true if the item is not below the range.
    fn starts_before(&self, item: &Scored) -> bool {
        match self {
            Self::Scores(least, _) => least.is_below(item.score),
            Self::Members(least, _) => least.is_below(Lex::Member(&item.member)),
        }
    }

    /// Returns true if the item is not above the range.
    fn ends_after(&self, item: &Scored) -> bool {
        match self {
            Self::Scores(_, most) => most.is_above(item.score),
            Self::Members(_, most) => most.is_above(Lex::Member(&item.member)),
        }
    }
}

impl<T: PartialOrd> Edge<T> {
    fn is_below(&self, value: T) -> bool {
        if self.is_excluded { value > self.at } else { value >= self.at }
    }

    fn is_above(&self, value: T) -> bool {
        if self.is_excluded { value < self.at } else { value <= self.at }
    }
}

fn is_empty<T: PartialOrd>(least: &Edge<T>, most: &Edge<T>) -> bool {
    least.at > most.at || (least.at == most.at && (least.is_excluded || most.is_excluded))
}

/// Reads `1.5` or `(1.5`. As in C, the text ends at its first zero byte, and an empty number is 0.
fn score_edge(text: &[u8]) -> Option<Edge<f64>> {
    let (is_excluded, number) = match text {
        [b'(', number @ ..] => (true, number),
        number => (false, number),
    };
    let number = number.split(|byte| *byte == 0).next().unwrap_or_default();
    let (at, length) = strtod(number);
    (length == number.len() && !at.is_nan()).then_some(Edge { at, is_excluded })
}

fn member_edge(text: &[u8]) -> Option<Edge<Lex<'_>>> {
    let (at, is_excluded) = match text {
        [b'-'] => (Lex::Lowest, false),
        [b'+'] => (Lex::Highest, false),
        [b'[', member @ ..] => (Lex::Member(member), false),
        [b'(', member @ ..] => (Lex::Member(member), true),
        _ => return None,
    };
    Some(Edge { at, is_excluded })
}
