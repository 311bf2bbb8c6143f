//! The arguments of Redis' commands on the expiries of fields. Source: `t_hash.c` of Redis 8.4
//! (`parseHashCommandArgs`, `parseHashFieldExpireArgs`).

use super::super::expiry::{Conditions, Unit, invalid_expire_time};
use super::super::ranges::{parse_integer, parse_within};
use super::super::{shown, wrong_arity};
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::word::Word;

/// The latest expiry, in milliseconds since the Unix epoch: Redis keeps two of 48 bits for later use.
const LATEST_MS: i64 = (1 << 46) - 1;

const FIELDS: Word = Word::new("fields");
const FNX: Word = Word::new("fnx");
const FXX: Word = Word::new("fxx");
const KEEPTTL: Word = Word::new("keepttl");
const PERSIST: Word = Word::new("persist");

const WRONG_NUMBER: &str = "ERR wrong number of arguments";

/// The arguments of HEXPIRE and its like, after the key and the time.
#[derive(Debug)]
pub(super) struct Expire<'a> {
    pub(super) expires_at: i64,
    pub(super) conditions: Conditions,
    /// The words before the number of fields.
    pub(super) before: Args<'a>,
    pub(super) fields: Args<'a>,
    /// The words after the last field.
    pub(super) after: Args<'a>,
}

impl<'a> Expire<'a> {
    pub(super) fn parse(args: Args<'a>, unit: Unit, now_ms: i64, command: &str) -> Result<Self, Reply> {
        let expires_at = time(args.at(2), unit, now_ms, command)?;
        let mut conditions = Conditions::default();
        let mut block: Option<(usize, Args<'a>)> = None;
        let mut at = 3;
        while at < args.len() {
            if Word::of(args.at(at)) == FIELDS {
                if block.is_some() {
                    return Err(Reply::error("ERR FIELDS keyword specified multiple times"));
                }
                if at + 2 >= args.len() {
                    let text = "ERR FIELDS requires at least numfields and one field argument";
                    return Err(Reply::error(text));
                }
                let no_number = "ERR Parameter `numFields` should be greater than 0";
                let fields = counted(args.skip(at + 1), 1, no_number)?;
                block = Some((at + 1, fields));
                at += 1 + fields.len();
            } else if !conditions.add(args.at(at)) {
                return Err(unknown(args.at(at)));
            }
            at += 1;
        }
        if conditions.count() > 1 {
            return Err(Reply::error("ERR Multiple condition flags specified"));
        }
        // Without FIELDS there are none: that is no error.
        let (number_at, fields) = block.unwrap_or((args.len(), args.take(0)));
        let (before, after) = (args.take(number_at).skip(3), args.skip(number_at + 1 + fields.len()));
        Ok(Self { expires_at, conditions, before, fields, after })
    }
}

/// The commands that take options before and after fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionsOf {
    GetEx,
    SetEx,
}

/// The options of HGETEX and HSETEX.
#[derive(Debug)]
pub(super) struct Options<'a> {
    /// The place and the unit of the option that sets an expiry, and that expiry.
    pub(super) expiry: Option<(usize, Unit, i64)>,
    pub(super) persists: bool,
    pub(super) keeps_expiry: bool,
    /// Whether all fields must exist, or none may.
    pub(super) presence: Option<bool>,
    /// The fields, for HSETEX each with its value.
    pub(super) fields: Args<'a>,
}

impl<'a> Options<'a> {
    pub(super) fn parse(args: Args<'a>, of: OptionsOf, now_ms: i64) -> Result<Self, Reply> {
        let fields = args.take(0);
        let mut options = Self { expiry: None, persists: false, keeps_expiry: false, presence: None, fields };
        let mut at = 2;
        while at < args.len() {
            at += options.add(args, at, of, now_ms)?;
        }
        let has_other = match of {
            OptionsOf::GetEx => options.keeps_expiry || options.presence.is_some(),
            OptionsOf::SetEx => options.persists,
        };
        if has_other { Err(Reply::error("ERR unknown argument")) } else { Ok(options) }
    }

    /// Adds the option at place `at`. Returns the number of its words.
    fn add(&mut self, args: Args<'a>, at: usize, of: OptionsOf, now_ms: i64) -> Result<usize, Reply> {
        let word = Word::of(args.at(at));
        let has_expiry = self.expiry.is_some();
        if let Some(unit) = Unit::of_option(word) {
            if has_expiry || self.keeps_expiry || self.persists {
                return Err(contradiction(of));
            }
            let time_text = args.skip(at + 1).iter().next();
            let text = time_text.ok_or(Reply::error("ERR missing expire time"))?;
            self.expiry = Some((at, unit, time(text, unit, now_ms, of.command())?));
            return Ok(2);
        }
        match word {
            FIELDS => {
                let rest = args.skip(at + 1);
                if rest.is_empty() {
                    return Err(wrong_arity(of.command()));
                }
                let per_field = if of == OptionsOf::SetEx { 2 } else { 1 };
                self.fields = counted(rest, per_field, "ERR invalid number of fields")?;
                return Ok(2 + self.fields.len());
            }
            PERSIST if has_expiry || self.persists => return Err(contradiction(of)),
            PERSIST => self.persists = true,
            KEEPTTL if has_expiry || self.keeps_expiry => return Err(contradiction(of)),
            KEEPTTL => self.keeps_expiry = true,
            FNX | FXX if self.presence.is_some() => {
                return Err(Reply::error("ERR Only one of FXX or FNX arguments can be specified"));
            }
            FNX | FXX => self.presence = Some(word == FXX),
            _ => return Err(unknown(args.at(at))),
        }
        Ok(1)
    }
}

impl OptionsOf {
    fn command(self) -> &'static str {
        match self {
            Self::GetEx => "hgetex",
            Self::SetEx => "hsetex",
        }
    }
}

/// Reads `FIELDS numfields field …`, which must be all that follows the key.
pub(super) fn all_fields(args: Args<'_>) -> Result<Args<'_>, Reply> {
    if Word::of(args.at(2)) != FIELDS {
        let text = "ERR Mandatory argument FIELDS is missing or not at the right position";
        return Err(Reply::error(text));
    }
    let not_positive = "ERR Number of fields must be a positive integer";
    let count = parse_within(args.at(3), 1..=i64::MAX, Some(not_positive))?;
    let fields = args.skip(4);
    if usize::try_from(count) != Ok(fields.len()) {
        return Err(Reply::error("ERR The `numfields` parameter must match the number of arguments"));
    }
    Ok(fields)
}

/// Reads a number of fields, and returns that many of the words after it; `per_field` words for each.
fn counted<'a>(args: Args<'a>, per_field: usize, error: &'static str) -> Result<Args<'a>, Reply> {
    let count = parse_within(args.at(0), 1..=i64::from(i32::MAX), Some(error))?;
    let words = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(per_field);
    let fields = args.skip(1).take(words);
    if fields.len() < words { Err(Reply::error(WRONG_NUMBER)) } else { Ok(fields) }
}

/// Reads an expiry. Returns it in milliseconds since the Unix epoch.
fn time(text: &[u8], unit: Unit, now_ms: i64, command: &str) -> Result<i64, Reply> {
    let number = parse_integer(text)?;
    if number < 0 {
        return Err(Reply::error("ERR invalid expire time, must be >= 0"));
    }
    let expires_at = unit.resolve(number, now_ms).filter(|at| *at <= LATEST_MS);
    expires_at.ok_or_else(|| invalid_expire_time(command))
}

fn contradiction(of: OptionsOf) -> Reply {
    Reply::error(match of {
        OptionsOf::GetEx => "ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified",
        OptionsOf::SetEx => "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
    })
}

fn unknown(argument: &[u8]) -> Reply {
    Reply::error_text([b"ERR unknown argument: ", shown(argument, usize::MAX)].concat())
}
