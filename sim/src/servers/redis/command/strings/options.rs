//! The options of SET and GETEX.

use super::super::SYNTAX_ERROR;
use super::super::expiry::{MILLIS, SECONDS, UNIX_MILLIS, UNIX_SECONDS, Unit};
use crate::servers::redis::keyspace::Entry;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::version::Version;
use crate::servers::redis::word::Word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionsOf {
    Set(Version),
    GetEx,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    Absent,
    Present,
    Equal(&'a [u8]),
    Different(&'a [u8]),
}

impl Condition<'_> {
    /// Returns whether the key's entry meets the condition. A condition on the value of a collection is an
    /// error.
    pub(super) fn holds(self, entry: Option<&Entry>) -> Result<bool, Reply> {
        Ok(match self {
            Self::Absent => entry.is_none(),
            Self::Present => entry.is_some(),
            Self::Equal(value) => match entry {
                Some(entry) => **entry.text()? == *value,
                None => false,
            },
            Self::Different(value) => match entry {
                Some(entry) => **entry.text()? != *value,
                None => true,
            },
        })
    }
}

/// The options of SET and GETEX.
#[derive(Debug, Default)]
pub(super) struct Options<'a> {
    pub(super) condition: Option<Condition<'a>>,
    pub(super) answers_former: bool,
    pub(super) keeps_expiry: bool,
    pub(super) persists: bool,
    expiry: Option<(Unit, &'a [u8])>,
}

const NX: Word = Word::new("nx");
const XX: Word = Word::new("xx");
pub(super) const IFEQ: Word = Word::new("ifeq");
pub(super) const IFNE: Word = Word::new("ifne");
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
    pub(super) fn parse(args: Args<'a>, of: OptionsOf) -> Result<Self, Reply> {
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

    /// Returns the expiry that the options set, if they do.
    pub(super) fn expires_at(&self, now_ms: i64, command: &str) -> Result<Option<i64>, Reply> {
        let Some((unit, time)) = self.expiry else { return Ok(None) };
        unit.parse_positive(time, now_ms, command).map(Some)
    }
}
