//! The arguments of the commands that pop from the first of several keys: LMPOP, ZMPOP and those that wait.

use super::SYNTAX_ERROR;
use super::ranges::{parse_key_count, parse_within};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::value::End;

/// Keys, an end and the most elements to be taken.
pub(super) struct Many<'a> {
    pub(super) keys: Args<'a>,
    pub(super) end: End,
    pub(super) count: usize,
}

impl<'a> Many<'a> {
    /// Reads the arguments from the number of keys on. `parse_end` reads the name of an end.
    pub(super) fn parse(args: Args<'a>, parse_end: fn(&[u8]) -> Result<End, Reply>) -> Result<Self, Reply> {
        let keys = parse_key_count(args.at(0), "ERR numkeys should be greater than 0")?;
        if keys > args.len().saturating_sub(2) {
            return Err(Reply::error(SYNTAX_ERROR));
        }
        let end = parse_end(args.at(keys + 1))?;
        let options = args.skip(keys + 2);
        if !options.is_empty() && (!options.at(0).eq_ignore_ascii_case(b"count") || options.len() == 1) {
            return Err(Reply::error(SYNTAX_ERROR));
        }
        let mut count = 1;
        if options.len() > 1 {
            count = parse_within(options.at(1), 1..=i64::MAX, Some("ERR count should be greater than 0"))?;
        }
        if options.len() > 2 {
            return Err(Reply::error(SYNTAX_ERROR));
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Self { keys: args.skip(1).take(keys), end, count })
    }
}
