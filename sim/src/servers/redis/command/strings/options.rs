//! The options of SET and GETEX, and of their like on several keys or on fields.

use super::super::SYNTAX_ERROR;
use super::super::expiry::Unit;
use super::conditions::{Comparison, Presence};
use crate::servers::redis::keyspace::Entry;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::version::Version;
use crate::servers::redis::word::Word;

/// The command that takes the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum OptionsOf {
    Set(Version),
    /// Also HGETEX of Valkey.
    GetEx,
    MSetEx,
    /// HSETEX of Valkey.
    HSetEx,
}

/// The options of a command.
#[derive(Debug, Default)]
pub(in super::super) struct Options<'a> {
    presence: Option<Presence>,
    /// The presence of fields.
    of_fields: Option<Presence>,
    comparison: Option<Comparison<'a>>,
    pub(super) answers_former: bool,
    pub(in super::super) keeps_expiry: bool,
    pub(in super::super) persists: bool,
    /// The unit and the time.
    pub(in super::super) expiry: Option<(Unit, &'a [u8])>,
}

const NX: Word = Word::new("nx");
const XX: Word = Word::new("xx");
const FNX: Word = Word::new("fnx");
const FXX: Word = Word::new("fxx");
const GET: Word = Word::new("get");
const KEEPTTL: Word = Word::new("keepttl");
const PERSIST: Word = Word::new("persist");

impl<'a> Options<'a> {
    /// Reads the options; those that contradict each other are a syntax error, a repeated one is not.
    pub(in super::super) fn parse(args: Args<'a>, of: OptionsOf) -> Result<Self, Reply> {
        let mut options = Self::default();
        let mut rest = args.iter();
        while let Some(option) = rest.next() {
            let accepted = match (of, Word::of(option)) {
                (OptionsOf::Set(version), NX) => options.require(version, Presence::Absent),
                (OptionsOf::Set(version), XX) => options.require(version, Presence::Present),
                (OptionsOf::MSetEx | OptionsOf::HSetEx, NX) => agree(&mut options.presence, Presence::Absent),
                (OptionsOf::MSetEx | OptionsOf::HSetEx, XX) => {
                    agree(&mut options.presence, Presence::Present)
                }
                (OptionsOf::HSetEx, FNX) => agree(&mut options.of_fields, Presence::Absent),
                (OptionsOf::HSetEx, FXX) => agree(&mut options.of_fields, Presence::Present),
                (OptionsOf::Set(_), GET) => {
                    options.answers_former = true;
                    true
                }
                (OptionsOf::Set(_) | OptionsOf::MSetEx | OptionsOf::HSetEx, KEEPTTL) => {
                    options.keeps_expiry = true;
                    options.expiry.is_none()
                }
                (OptionsOf::GetEx, PERSIST) => {
                    options.persists = true;
                    options.expiry.is_none()
                }
                (of, option) => match Unit::of_option(option) {
                    Some(unit) => options.expire(unit, rest.next()),
                    None => options.compare(of, option, rest.next()),
                },
            };
            if !accepted {
                return Err(Reply::error(SYNTAX_ERROR));
            }
        }
        Ok(options)
    }

    /// Adds NX or XX. Redis 8.4 takes them after a comparison, though not before one: both must hold then.
    fn require(&mut self, version: Version, presence: Presence) -> bool {
        let fits = version == Version::Redis84 || self.comparison.is_none();
        fits && agree(&mut self.presence, presence)
    }

    /// Adds IFEQ, IFNE, IFDEQ or IFDNE. Redis takes the same one several times, and the last one counts;
    /// Valkey takes it once.
    fn compare(&mut self, of: OptionsOf, word: Word, operand: Option<&'a [u8]>) -> bool {
        let (OptionsOf::Set(version), Some(operand)) = (of, operand) else { return false };
        let Some(comparison) = Comparison::of(version, word, operand) else { return false };
        let former = self.comparison.replace(comparison);
        let takes_again =
            |former: Comparison<'_>| version == Version::Redis84 && former.is_same_kind(&comparison);
        self.presence.is_none() && former.is_none_or(takes_again)
    }

    fn expire(&mut self, unit: Unit, time: Option<&'a [u8]>) -> bool {
        let Some(time) = time else { return false };
        let fits = self.expiry.is_none_or(|(former, _)| former == unit);
        self.expiry = Some((unit, time));
        fits && !self.keeps_expiry && !self.persists
    }

    /// Returns the expiry that the options set, if they do.
    pub(super) fn expires_at(&self, now_ms: i64, command: &str) -> Result<Option<i64>, Reply> {
        let Some((unit, time)) = self.expiry else { return Ok(None) };
        unit.parse_positive(time, now_ms, command).map(Some)
    }

    /// Returns whether the key's entry meets all conditions.
    pub(super) fn allow(&self, entry: Option<&Entry>) -> Result<bool, Reply> {
        if !self.allow_key(entry.is_some()) {
            return Ok(false);
        }
        self.comparison.map_or(Ok(true), |comparison| comparison.holds(entry))
    }

    /// Returns true if there is no condition on the presence of the key, or if it is met.
    pub(in super::super) fn allow_key(&self, exists: bool) -> bool {
        self.presence.is_none_or(|presence| presence.holds(exists))
    }

    /// As [`Options::allow_key`], for a field.
    pub(in super::super) fn allow_field(&self, exists: bool) -> bool {
        self.of_fields.is_none_or(|presence| presence.holds(exists))
    }
}

/// Notes a condition; returns false if it contradicts a former one.
fn agree(slot: &mut Option<Presence>, presence: Presence) -> bool {
    *slot.get_or_insert(presence) == presence
}

/// Returns options as replicas repeat them: without conditions unless `has_conditions`, and with the time
/// that `at` returns for a unit, in milliseconds since the Unix epoch. Of several times only the last counts.
pub(in super::super) fn repeated<'a>(
    options: Args<'a>,
    has_conditions: bool,
    at: impl Fn(Unit) -> Option<&'a [u8]>,
) -> Vec<&'a [u8]> {
    let (mut words, mut expiry) = (Vec::new(), None);
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let word = Word::of(option);
        match Unit::of_option(word) {
            Some(unit) => {
                let sent = [option, rest.next().unwrap_or_default()];
                expiry = Some((words.len(), at(unit).map_or(sent, |at| [b"PXAT", at])));
            }
            None if has_conditions || ![NX, XX, FNX, FXX].contains(&word) => words.push(option),
            None => {}
        }
    }
    if let Some((place, expiry)) = expiry {
        words.splice(place..place, expiry);
    }
    words
}
