//! Commands that set, read and remove expiries. Source: `expire.c` of Redis 7.0 and of Valkey 9.1.

use super::{NOT_AN_INTEGER, shown};
use crate::servers::redis::effects::Removal;
use crate::servers::redis::number::parse_i64;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;
use crate::servers::redis::word::Word;

/// The meaning of a time in an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Seconds, or milliseconds.
    pub(super) in_seconds: bool,
    /// Since the epoch, or from now.
    pub(super) is_absolute: bool,
}

pub(super) const SECONDS: Unit = Unit { in_seconds: true, is_absolute: false };
pub(super) const MILLIS: Unit = Unit { in_seconds: false, is_absolute: false };
pub(super) const UNIX_SECONDS: Unit = Unit { in_seconds: true, is_absolute: true };
pub(super) const UNIX_MILLIS: Unit = Unit { in_seconds: false, is_absolute: true };

/// The options that set an expiry.
const OPTIONS: [(Word, Unit); 4] = [
    (Word::new("ex"), SECONDS),
    (Word::new("px"), MILLIS),
    (Word::new("exat"), UNIX_SECONDS),
    (Word::new("pxat"), UNIX_MILLIS),
];

impl Unit {
    /// Converts `number` to an absolute time in milliseconds; returns `None` out of range.
    pub(super) fn resolve(self, number: i64, now_ms: i64) -> Option<i64> {
        let millis = if self.in_seconds { number.checked_mul(1000)? } else { number };
        if self.is_absolute { Some(millis) } else { millis.checked_add(now_ms) }
    }

    /// Returns the unit of an option such as EX.
    pub(super) fn of_option(name: Word) -> Option<Self> {
        let (_, unit) = OPTIONS.into_iter().find(|(option, _)| *option == name)?;
        Some(unit)
    }

    /// Reads an expiry that must be positive, as an option of SET does.
    pub(super) fn parse_positive(self, text: &[u8], now_ms: i64, command: &str) -> Result<i64, Reply> {
        let number = parse_i64(text).ok_or(Reply::error(NOT_AN_INTEGER))?;
        let positive = Some(number).filter(|number| *number > 0);
        positive.and_then(|number| self.resolve(number, now_ms)).ok_or_else(|| invalid_expire_time(command))
    }
}

pub(super) fn expire(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    set_expiry(state, args, SECONDS, "expire")
}

pub(super) fn pexpire(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    set_expiry(state, args, MILLIS, "pexpire")
}

pub(super) fn expireat(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    set_expiry(state, args, UNIX_SECONDS, "expireat")
}

pub(super) fn pexpireat(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    set_expiry(state, args, UNIX_MILLIS, "pexpireat")
}

pub(super) fn ttl(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(time_left(state, args.at(1), |at, now_ms| nearest_second(at.saturating_sub(now_ms).max(0))))
}

pub(super) fn pttl(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(time_left(state, args.at(1), |at, now_ms| at.saturating_sub(now_ms).max(0)))
}

pub(super) fn expiretime(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(time_left(state, args.at(1), |at, _| nearest_second(at)))
}

pub(super) fn pexpiretime(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(time_left(state, args.at(1), |at, _| at))
}

pub(super) fn persist(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let key = args.at(1);
    if state.lookup(key).is_none_or(|entry| entry.expires_at.is_none()) {
        return Ok(Reply::Integer(0));
    }
    state.expire_at(key, None);
    Ok(Reply::Integer(1))
}

/// Returns the nearest number of seconds.
pub(super) fn nearest_second(millis: i64) -> i64 {
    millis / 1000 + i64::from(millis % 1000 >= 500)
}

pub(super) fn invalid_expire_time(command: &str) -> Reply {
    Reply::error_text(format!("ERR invalid expire time in '{command}' command"))
}

fn time_left(state: &mut State, key: &[u8], answer: impl Fn(i64, i64) -> i64) -> Reply {
    let now_ms = state.now_ms();
    Reply::Integer(match state.peek(key) {
        None => -2,
        Some(entry) => entry.expires_at.map_or(-1, |at| answer(at, now_ms)),
    })
}

fn set_expiry(state: &mut State, args: Args<'_>, unit: Unit, command: &str) -> Result<Reply, Reply> {
    let conditions = Conditions::parse(args.skip(3))?;
    let (key, now_ms) = (args.at(1), state.now_ms());
    let number = parse_i64(args.at(2)).ok_or(Reply::error(NOT_AN_INTEGER))?;
    let at = unit.resolve(number, now_ms).ok_or_else(|| invalid_expire_time(command))?;
    let Some(entry) = state.lookup(key) else { return Ok(Reply::Integer(0)) };
    if !conditions.hold(entry.expires_at, at) {
        return Ok(Reply::Integer(0));
    }
    if state.is_past(at) {
        end(state, key);
    } else {
        state.expire_at(key, Some(at));
    }
    Ok(Reply::Integer(1))
}

/// Removes `key`, whose new expiry has passed: for Valkey it has expired, for Redis it is deleted.
pub(super) fn end(state: &mut State, key: &[u8]) {
    if state.is_valkey() {
        state.remove(key, Removal::Expired);
    } else {
        state.delete(key);
    }
}

/// The options of EXPIRE and HEXPIRE: the conditions under which the new expiry replaces the old one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conditions {
    /// NX: only if there is none yet.
    if_none: bool,
    /// XX: only if there is one.
    if_some: bool,
    /// GT: only if it is later. No expiry counts as the latest.
    if_later: bool,
    /// LT: only if it is earlier.
    if_earlier: bool,
}

impl Conditions {
    /// Reads all of `args` as conditions.
    pub(super) fn parse(args: Args<'_>) -> Result<Self, Reply> {
        let mut conditions = Self::default();
        for option in args.iter() {
            if !conditions.add(option) {
                let text = [b"ERR Unsupported option ", shown(option, usize::MAX)].concat();
                return Err(Reply::error_text(text));
            }
        }
        let Self { if_none, if_some, if_later, if_earlier } = conditions;
        if if_none && (if_some || if_later || if_earlier) {
            let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(Reply::error(text));
        }
        if if_later && if_earlier {
            return Err(Reply::error("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// Adds a condition; returns false if `option` names none.
    pub(super) fn add(&mut self, option: &[u8]) -> bool {
        *match option.to_ascii_lowercase().as_slice() {
            b"nx" => &mut self.if_none,
            b"xx" => &mut self.if_some,
            b"gt" => &mut self.if_later,
            b"lt" => &mut self.if_earlier,
            _ => return false,
        } = true;
        true
    }

    /// Returns the number of different conditions.
    pub(super) fn count(self) -> usize {
        let Self { if_none, if_some, if_later, if_earlier } = self;
        [if_none, if_some, if_later, if_earlier].into_iter().filter(|is_set| *is_set).count()
    }

    pub(super) fn hold(self, current: Option<i64>, wanted: i64) -> bool {
        let later = current.is_some_and(|current| wanted > current);
        let earlier = current.is_none_or(|current| wanted < current);
        (!self.if_none || current.is_none())
            && (!self.if_some || current.is_some())
            && (!self.if_later || later)
            && (!self.if_earlier || earlier)
    }
}
