//! Commands on keys of any kind, and those that touch no key.

use std::borrow::Cow;

use super::{NOT_AN_INTEGER, SYNTAX_ERROR, shown, wrong_arity};
use crate::servers::redis::glob;
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;

pub(super) fn del(state: &mut State, args: Args<'_>) -> Reply {
    Reply::count(args.skip(1).iter().filter(|key| state.delete(key)).count())
}

pub(super) fn exists(state: &mut State, args: Args<'_>) -> Reply {
    Reply::count(args.skip(1).iter().filter(|key| state.lookup(key).is_some()).count())
}

pub(super) fn kind(state: &mut State, args: Args<'_>) -> Reply {
    Reply::status(if state.lookup(args.at(1)).is_some() { "string" } else { "none" })
}

pub(super) fn publish(state: &mut State, args: Args<'_>) -> Reply {
    Reply::count(state.channels.publish(args.at(1), args.at(2), state.now_micros))
}

pub(super) fn dbsize(state: &mut State, _: Args<'_>) -> Reply {
    Reply::count(state.keyspace.len())
}

pub(super) fn flush(state: &mut State, args: Args<'_>) -> Reply {
    match args.len() {
        1 => {}
        2 if args.at(1).eq_ignore_ascii_case(b"sync") || args.at(1).eq_ignore_ascii_case(b"async") => {}
        _ => return Reply::error(SYNTAX_ERROR),
    }
    state.flush();
    Reply::OK
}

pub(super) fn keys(state: &mut State, args: Args<'_>) -> Reply {
    Reply::Array(matching(state, |key| glob::matches(args.at(1), key)))
}

/// SCAN: returns all keys at once, whatever the cursor. The count is only a hint, in Redis too.
pub(super) fn scan(state: &mut State, args: Args<'_>) -> Reply {
    let Some(cursor) = parse_cursor(args.at(1)) else { return Reply::error("ERR invalid cursor") };
    let options = match ScanOptions::parse(args.skip(2)) {
        Ok(options) => options,
        Err(error) => return error,
    };
    let found = matching(state, |key| cursor == 0 && options.takes(key));
    Reply::Array(vec![Reply::bulk("0"), Reply::Array(found)])
}

pub(super) fn echo(_: &mut State, args: Args<'_>) -> Reply {
    Reply::bulk(args.at(1))
}

pub(super) fn ping(_: &mut State, args: Args<'_>) -> Reply {
    match args.len() {
        1 => Reply::status("PONG"),
        2 => Reply::bulk(args.at(1)),
        _ => wrong_arity("ping"),
    }
}

/// SELECT: there is one database, as in a Redis with the setting `databases 1`.
pub(super) fn select(_: &mut State, args: Args<'_>) -> Reply {
    match parse_i64(args.at(1)).map(i32::try_from) {
        Some(Ok(0)) => Reply::OK,
        Some(Ok(_)) => Reply::error("ERR DB index is out of range"),
        Some(Err(_)) => {
            let (least, most) = (i32::MIN, i32::MAX);
            Reply::error_text(format!("ERR value is out of range, value must between {least} and {most}"))
        }
        None => Reply::error(NOT_AN_INTEGER),
    }
}

pub(super) fn time(state: &mut State, _: Args<'_>) -> Reply {
    let seconds = state.now_micros / 1_000_000;
    let micros = state.now_micros % 1_000_000;
    Reply::Array(vec![Reply::bulk(seconds.to_string()), Reply::bulk(micros.to_string())])
}

/// Reads a cursor as C's `strtoul` does: with an optional sign; an empty one is 0, a negative one wraps
/// around.
fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(shown(text, usize::MAX)).ok()?;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if text.is_empty() {
        return Some(0);
    }
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok())??;
    Some(if is_negative { number.wrapping_neg() } else { number })
}

struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    kind: Option<Cow<'a, [u8]>>,
}

impl<'a> ScanOptions<'a> {
    fn parse(args: Args<'a>) -> Result<Self, Reply> {
        let mut options = Self { pattern: None, kind: None };
        for at in (0..args.len()).step_by(2) {
            let (option, value) = (args.at(at), args.skip(at + 1).iter().next());
            let value = value.ok_or(Reply::error(SYNTAX_ERROR))?;
            if option.eq_ignore_ascii_case(b"count") {
                match parse_i64(value) {
                    Some(1..) => {}
                    Some(_) => return Err(Reply::error(SYNTAX_ERROR)),
                    None => return Err(Reply::error(NOT_AN_INTEGER)),
                }
            } else if option.eq_ignore_ascii_case(b"match") {
                options.pattern = Some(value);
            } else if option.eq_ignore_ascii_case(b"type") {
                options.kind = Some(Cow::Borrowed(value));
            } else {
                return Err(Reply::error(SYNTAX_ERROR));
            }
        }
        Ok(options)
    }

    fn takes(&self, key: &[u8]) -> bool {
        self.kind.as_ref().is_none_or(|kind| kind.eq_ignore_ascii_case(b"string"))
            && self.pattern.is_none_or(|pattern| glob::matches(pattern, key))
    }
}

/// Returns the names that `takes` accepts, without those that have expired.
fn matching(state: &mut State, takes: impl Fn(&[u8]) -> bool) -> Vec<Reply> {
    let now_ms = state.now_ms();
    let live = state.keyspace.iter().filter(|(_, entry)| !entry.is_expired(now_ms));
    live.filter(|(key, _)| takes(key)).map(|(key, _)| Reply::Bulk(key.clone())).collect()
}
