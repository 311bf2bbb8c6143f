//! The options of SET and GETEX.

use super::super::SYNTAX_ERROR;
use super::super::expiry::{MILLIS, SECONDS, UNIX_MILLIS, UNIX_SECONDS, Unit};
use super::conditions::{Comparison, Presence};
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

/// The options of SET and GETEX.
#[derive(Debug, Default)]
pub(super) struct Options<'a> {
    presence: Option<Presence>,
    comparison: Option<Comparison<'a>>,
    pub(super) answers_former: bool,
    pub(super) keeps_expiry: bool,
    pub(super) persists: bool,
    expiry: Option<(Unit, &'a [u8])>,
}

const NX: Word = Word::new("nx");
const XX: Word = Word::new("xx");
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
                (OptionsOf::Set(version), NX) => options.require(version, Presence::Absent),
                (OptionsOf::Set(version), XX) => options.require(version, Presence::Present),
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
                (of, option) => match EXPIRY_UNITS.iter().find(|(name, _)| *name == option) {
                    Some((_, unit)) => options.expire(*unit, rest.next()),
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
        fits && *self.presence.get_or_insert(presence) == presence
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
        if self.presence.is_some_and(|presence| !presence.holds(entry)) {
            return Ok(false);
        }
        self.comparison.map_or(Ok(true), |comparison| comparison.holds(entry))
    }
}
