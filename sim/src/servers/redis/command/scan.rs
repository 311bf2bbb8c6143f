//! SCAN and its like on collections. Source: `scanGenericCommand` in `db.c` of Redis 7.0.
//!
//! They return everything at once, as Redis does for a collection in its compact encoding.

use std::sync::Arc;

use super::{NOT_AN_INTEGER, SYNTAX_ERROR, shown};
use crate::servers::redis::glob;
use crate::servers::redis::number::{format_f64, parse_i64};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::value::{Collection, Hash, Set, SortedSet, Value};

pub(super) fn hscan(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let clock = state.field_clock();
    scan_collection(state, args, |hash: &Hash| {
        hash.live_pairs(clock).into_iter().map(|(field, value)| vec![field, value]).collect()
    })
}

pub(super) fn sscan(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    scan_collection(state, args, |set: &Set| set.members().into_iter().map(|member| vec![member]).collect())
}

pub(super) fn zscan(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    scan_collection(state, args, |set: &SortedSet| {
        let score = |score: f64| Arc::from(format_f64(score).into_bytes());
        set.items().iter().map(|item| vec![item.member.clone(), score(item.score)]).collect()
    })
}

/// Returns the elements of a collection whose first text matches.
fn scan_collection<T: Collection>(
    state: &mut State,
    args: Args<'_>,
    elements: impl Fn(&T) -> Vec<Vec<Arc<[u8]>>>,
) -> Result<Reply, Reply> {
    parse_cursor(args.at(2))?;
    let Some(collection) = state.read::<T>(args.at(1))? else { return Ok(page(Vec::new())) };
    let options = ScanOptions::parse(args.skip(3), false)?;
    let found = elements(collection).into_iter().filter(|texts| options.takes(&texts[0]));
    Ok(page(found.flatten().map(Reply::Bulk).collect()))
}

/// Returns the reply with all that was found, and the cursor that ends the scan.
pub(super) fn page(found: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk("0"), Reply::Array(found)])
}

/// Reads a cursor as C's `strtoul` does: with an optional sign; an empty one is 0, a negative one wraps
/// around.
pub(super) fn parse_cursor(text: &[u8]) -> Result<u64, Reply> {
    let number = || {
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
    };
    number().ok_or(Reply::error("ERR invalid cursor"))
}

/// The options of a scan.
pub(super) struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
}

impl<'a> ScanOptions<'a> {
    /// Reads the options; `of_keys`: TYPE is one of them.
    pub(super) fn parse(args: Args<'a>, of_keys: bool) -> Result<Self, Reply> {
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
                options.pattern = Some(value).filter(|pattern| *pattern != b"*");
            } else if option.eq_ignore_ascii_case(b"type") && of_keys {
                options.kind = Some(value);
            } else {
                return Err(Reply::error(SYNTAX_ERROR));
            }
        }
        Ok(options)
    }

    pub(super) fn takes(&self, text: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, text))
    }

    pub(super) fn takes_kind(&self, value: &Value) -> bool {
        self.kind.is_none_or(|kind| kind.eq_ignore_ascii_case(value.kind().as_bytes()))
    }
}
