//! Reads numbers with limits, and ranges of places. Source: `object.c` of Redis 7.0.

use std::ops::Range;

use super::NOT_AN_INTEGER;
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::Reply;

/// Reads a whole number.
pub(super) fn parse_integer(text: &[u8]) -> Result<i64, Reply> {
    parse_i64(text).ok_or(Reply::error(NOT_AN_INTEGER))
}

/// Reads a whole number within `limits`. The error is `error`, or the one of Redis.
pub(super) fn parse_within(
    text: &[u8],
    limits: std::ops::RangeInclusive<i64>,
    error: Option<&'static str>,
) -> Result<i64, Reply> {
    let number = parse_i64(text).ok_or(Reply::error(error.unwrap_or(NOT_AN_INTEGER)))?;
    if limits.contains(&number) {
        return Ok(number);
    }
    Err(error.map_or_else(
        || {
            let (least, most) = limits.into_inner();
            let text = format!("ERR value is out of range, value must between {least} and {most}");
            Reply::error_text(text)
        },
        Reply::error,
    ))
}

/// Reads a number that C's `int` holds.
pub(super) fn parse_i32(text: &[u8], error: Option<&'static str>) -> Result<i32, Reply> {
    let number = parse_within(text, i64::from(i32::MIN)..=i64::from(i32::MAX), error)?;
    i32::try_from(number).map_err(|_| Reply::error(NOT_AN_INTEGER))
}

/// Reads the number of elements that a command is to return: not negative.
pub(super) fn parse_count(text: &[u8]) -> Result<usize, Reply> {
    const NEGATIVE: &str = "ERR value is out of range, must be positive";
    let number = parse_within(text, 0..=i64::MAX, Some(NEGATIVE))?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

/// Reads the number of keys that follow it, and checks that they do.
pub(super) fn parse_key_count(text: &[u8], error: &'static str) -> Result<usize, Reply> {
    let number = parse_within(text, 1..=i64::MAX, Some(error))?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

/// Returns the places from `start` to `end`, both included, among `length` of them; negative ones count from
/// the end.
pub(super) fn places(start: i64, end: i64, length: usize) -> Range<usize> {
    // No collection has 2^63 elements.
    let count = length as i64;
    let absolute = |index: i64| if index < 0 { index.saturating_add(count) } else { index };
    let (start, end) = (absolute(start).max(0), absolute(end).min(count - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_cut_to_the_collection() {
        for (start, end, range) in
            [(0, -1, 0..3), (-2, 5, 1..3), (2, 1, 0..0), (3, 9, 0..0), (-9, -4, 0..0), (-9, 0, 0..1)]
        {
            assert_eq!(places(start, end, 3), range, "{start} {end}");
        }
        assert_eq!(places(i64::MIN, i64::MAX, 0), 0..0);
    }
}
