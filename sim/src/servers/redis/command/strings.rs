//! Commands on values. Source: `t_string.c` of Redis 7.0; for conditions on values that of Redis 8.4 and of
//! Valkey 9.1, and `db.c` of Redis 8.4 for DELEX.

use std::sync::Arc;

use super::expiry::{MILLIS, SECONDS, UNIX_MILLIS, UNIX_SECONDS, Unit};
use super::{NOT_AN_INTEGER, SYNTAX_ERROR, wrong_arity};
use crate::servers::redis::keyspace::Entry;
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::version::Version;
use crate::servers::redis::word::Word;

pub(super) fn get(state: &mut State, args: Args<'_>) -> Reply {
    state.value(args.at(1)).map_or(Reply::Nil, Reply::Bulk)
}

pub(super) fn set(state: &mut State, args: Args<'_>) -> Reply {
    let options = match Options::parse(args.skip(3), OptionsOf::Set(state.version)) {
        Ok(options) => options,
        Err(error) => return error,
    };
    let expires_at = match options.expires_at(state.now_ms(), "set") {
        Ok(expires_at) => expires_at,
        Err(error) => return error,
    };
    let key = args.at(1);
    let former = state.lookup(key).cloned();
    let allowed = options.condition.is_none_or(|condition| condition.holds(former.as_ref()));
    let kept = former.as_ref().and_then(|entry| entry.expires_at).filter(|_| options.keeps_expiry);
    let answer = match former {
        Some(former) if options.answers_former => Reply::Bulk(former.value),
        None if options.answers_former => Reply::Nil,
        _ if allowed => Reply::OK,
        _ => Reply::Nil,
    };
    if allowed {
        state.set(key, args.at(2).into(), expires_at.or(kept));
    }
    answer
}

/// DELEX of Redis 8.4, without digests. A missing key is none even of an unknown condition.
pub(super) fn delex(state: &mut State, args: Args<'_>) -> Reply {
    let key = args.at(1);
    match args.len() {
        2 => return Reply::count(usize::from(state.delete(key))),
        4 => {}
        _ => return wrong_arity("delex"),
    }
    let Some(entry) = state.lookup(key) else { return Reply::Integer(0) };
    let condition = match Word::of(args.at(2)) {
        IFEQ => Condition::Equal(args.at(3)),
        IFNE => Condition::Different(args.at(3)),
        _ => return Reply::error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"),
    };
    let is_met = condition.holds(Some(entry));
    Reply::count(usize::from(is_met && state.delete(key)))
}

/// DELIFEQ of Valkey 9.
pub(super) fn delifeq(state: &mut State, args: Args<'_>) -> Reply {
    let is_equal = state.lookup(args.at(1)).is_some_and(|entry| *entry.value == *args.at(2));
    Reply::count(usize::from(is_equal && state.delete(args.at(1))))
}

pub(super) fn setnx(state: &mut State, args: Args<'_>) -> Reply {
    if state.lookup(args.at(1)).is_some() {
        return Reply::Integer(0);
    }
    state.set(args.at(1), args.at(2).into(), None);
    Reply::Integer(1)
}

pub(super) fn setex(state: &mut State, args: Args<'_>) -> Reply {
    set_until(state, args, SECONDS, "setex")
}

pub(super) fn psetex(state: &mut State, args: Args<'_>) -> Reply {
    set_until(state, args, MILLIS, "psetex")
}

pub(super) fn getset(state: &mut State, args: Args<'_>) -> Reply {
    let former = state.value(args.at(1));
    state.set(args.at(1), args.at(2).into(), None);
    former.map_or(Reply::Nil, Reply::Bulk)
}

pub(super) fn getdel(state: &mut State, args: Args<'_>) -> Reply {
    let former = state.value(args.at(1));
    state.delete(args.at(1));
    former.map_or(Reply::Nil, Reply::Bulk)
}

pub(super) fn getex(state: &mut State, args: Args<'_>) -> Reply {
    let options = match Options::parse(args.skip(2), OptionsOf::GetEx) {
        Ok(options) => options,
        Err(error) => return error,
    };
    let (key, now_ms) = (args.at(1), state.now_ms());
    let Some(entry) = state.lookup(key).cloned() else { return Reply::Nil };
    match options.expires_at(now_ms, "getex") {
        Err(error) => return error,
        Ok(Some(at)) if at <= now_ms => {
            state.delete(key);
        }
        Ok(Some(at)) => state.expire_at(key, Some(at)),
        Ok(None) if options.persists && entry.expires_at.is_some() => state.expire_at(key, None),
        Ok(None) => {}
    }
    Reply::Bulk(entry.value)
}

pub(super) fn append(state: &mut State, args: Args<'_>) -> Reply {
    let key = args.at(1);
    let former = state.lookup(key).cloned();
    let (head, expires_at) = former.map_or((Arc::default(), None), |entry| (entry.value, entry.expires_at));
    let value = [&head, args.at(2)].concat();
    let length = value.len();
    state.set(key, value.into(), expires_at);
    Reply::count(length)
}

pub(super) fn strlen(state: &mut State, args: Args<'_>) -> Reply {
    Reply::count(state.lookup(args.at(1)).map_or(0, |entry| entry.value.len()))
}

pub(super) fn mget(state: &mut State, args: Args<'_>) -> Reply {
    Reply::Array(args.skip(1).iter().map(|key| state.value(key).map_or(Reply::Nil, Reply::Bulk)).collect())
}

pub(super) fn mset(state: &mut State, args: Args<'_>) -> Reply {
    if args.len().is_multiple_of(2) {
        return wrong_arity("mset");
    }
    set_pairs(state, args);
    Reply::OK
}

pub(super) fn msetnx(state: &mut State, args: Args<'_>) -> Reply {
    if args.len().is_multiple_of(2) {
        return wrong_arity("msetnx");
    }
    if args.skip(1).iter().step_by(2).any(|key| state.lookup(key).is_some()) {
        return Reply::Integer(0);
    }
    set_pairs(state, args);
    Reply::Integer(1)
}

pub(super) fn incr(state: &mut State, args: Args<'_>) -> Reply {
    add(state, args.at(1), 1)
}

pub(super) fn decr(state: &mut State, args: Args<'_>) -> Reply {
    add(state, args.at(1), -1)
}

pub(super) fn incrby(state: &mut State, args: Args<'_>) -> Reply {
    match parse_i64(args.at(2)) {
        Some(by) => add(state, args.at(1), by),
        None => Reply::error(NOT_AN_INTEGER),
    }
}

pub(super) fn decrby(state: &mut State, args: Args<'_>) -> Reply {
    match parse_i64(args.at(2)).map(i64::checked_neg) {
        Some(Some(by)) => add(state, args.at(1), by),
        Some(None) => Reply::error("ERR decrement would overflow"),
        None => Reply::error(NOT_AN_INTEGER),
    }
}

fn add(state: &mut State, key: &[u8], by: i64) -> Reply {
    let current = match state.lookup(key) {
        None => Some(0),
        Some(entry) => parse_i64(&entry.value),
    };
    let Some(current) = current else { return Reply::error(NOT_AN_INTEGER) };
    let Some(value) = current.checked_add(by) else {
        return Reply::error("ERR increment or decrement would overflow");
    };
    state.count(key, value, by);
    Reply::Integer(value)
}

fn set_until(state: &mut State, args: Args<'_>, unit: Unit, command: &str) -> Reply {
    match unit.parse_positive(args.at(2), state.now_ms(), command) {
        Ok(at) => {
            // The former value has expired or is overwritten.
            state.lookup(args.at(1));
            state.set(args.at(1), args.at(3).into(), Some(at));
            Reply::OK
        }
        Err(error) => error,
    }
}

fn set_pairs(state: &mut State, args: Args<'_>) {
    for at in (1..args.len()).step_by(2) {
        state.lookup(args.at(at));
        state.set(args.at(at), args.at(at + 1).into(), None);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionsOf {
    Set(Version),
    GetEx,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition<'a> {
    Absent,
    Present,
    Equal(&'a [u8]),
    Different(&'a [u8]),
}

impl Condition<'_> {
    /// Returns whether the key's entry meets the condition.
    fn holds(self, entry: Option<&Entry>) -> bool {
        match self {
            Self::Absent => entry.is_none(),
            Self::Present => entry.is_some(),
            Self::Equal(value) => entry.is_some_and(|entry| *entry.value == *value),
            Self::Different(value) => entry.is_none_or(|entry| *entry.value != *value),
        }
    }
}

/// The options of SET and GETEX.
#[derive(Debug, Default)]
struct Options<'a> {
    condition: Option<Condition<'a>>,
    answers_former: bool,
    keeps_expiry: bool,
    persists: bool,
    expiry: Option<(Unit, &'a [u8])>,
}

const NX: Word = Word::new("nx");
const XX: Word = Word::new("xx");
const IFEQ: Word = Word::new("ifeq");
const IFNE: Word = Word::new("ifne");
const GET: Word = Word::new("get");
const KEEPTTL: Word = Word::new("keepttl");
const PERSIST: Word = Word::new("persist");

const EXPIRY_UNITS: [(Word, Unit); 4] = [
    (Word::new("ex"), SECONDS),
    (Word::new("px"), MILLIS),
    (Word::new("exat"), UNIX_SECONDS),
    (Word::new("pxat"), UNIX_MILLIS),
];

impl<'a> Options<'a> {
    /// Reads the options; those that contradict each other are a syntax error, a repeated one is not.
    fn parse(args: Args<'a>, of: OptionsOf) -> Result<Self, Reply> {
        let mut options = Self::default();
        let mut rest = args.iter();
        while let Some(option) = rest.next() {
            let accepted = match (of, Word::of(option)) {
                (OptionsOf::Set(_), NX) => options.require(Condition::Absent),
                (OptionsOf::Set(_), XX) => options.require(Condition::Present),
                (OptionsOf::Set(version), word @ (IFEQ | IFNE)) => {
                    options.compare(version, word, rest.next())
                }
                (OptionsOf::Set(_), GET) => {
                    options.answers_former = true;
                    true
                }
                (OptionsOf::Set(_), KEEPTTL) => {
                    options.keeps_expiry = true;
                    options.expiry.is_none()
                }
                (OptionsOf::GetEx, PERSIST) => {
                    options.persists = true;
                    options.expiry.is_none()
                }
                (_, option) => match EXPIRY_UNITS.iter().find(|(name, _)| *name == option) {
                    Some((_, unit)) => options.expire(*unit, rest.next()),
                    None => false,
                },
            };
            if !accepted {
                return Err(Reply::error(SYNTAX_ERROR));
            }
        }
        Ok(options)
    }

    fn require(&mut self, condition: Condition<'a>) -> bool {
        *self.condition.get_or_insert(condition) == condition
    }

    /// Adds IFEQ or IFNE. Redis takes the same one several times, and the last value counts; Valkey takes it
    /// once.
    fn compare(&mut self, version: Version, word: Word, value: Option<&'a [u8]>) -> bool {
        let Some(value) = value else { return false };
        let condition = if word == IFEQ { Condition::Equal(value) } else { Condition::Different(value) };
        let former = self.condition.replace(condition);
        let is_same = |former| std::mem::discriminant(&former) == std::mem::discriminant(&condition);
        match version {
            Version::Redis7 => false,
            Version::Redis84 => former.is_none_or(is_same),
            Version::Valkey9 => word == IFEQ && former.is_none(),
        }
    }

    fn expire(&mut self, unit: Unit, time: Option<&'a [u8]>) -> bool {
        let Some(time) = time else { return false };
        let fits = self.expiry.is_none_or(|(former, _)| former == unit);
        self.expiry = Some((unit, time));
        fits && !self.keeps_expiry && !self.persists
    }

    fn expires_at(&self, now_ms: i64, command: &str) -> Result<Option<i64>, Reply> {
        let Some((unit, time)) = self.expiry else { return Ok(None) };
        unit.parse_positive(time, now_ms, command).map(Some)
    }
}
