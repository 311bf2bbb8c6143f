//! The conditions of SET and DELEX, and the digest of a string. Source: `t_string.c` of Redis 8.4.

use xxhash_rust::xxh3::xxh3_64;

use crate::servers::redis::keyspace::Entry;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::version::Version;
use crate::servers::redis::word::Word;

/// The length of a digest, in hexadecimal digits.
const DIGEST_DIGITS: usize = 16;

const IFEQ: Word = Word::new("ifeq");
const IFNE: Word = Word::new("ifne");
const IFDEQ: Word = Word::new("ifdeq");
const IFDNE: Word = Word::new("ifdne");

/// A condition on the presence of a key or a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Absent,
    Present,
}

impl Presence {
    pub(super) fn holds(self, exists: bool) -> bool {
        exists == (self == Self::Present)
    }
}

/// A condition on the value of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison<'a> {
    subject: Subject,
    wants_equal: bool,
    operand: &'a [u8],
}

/// The subject of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Value,
    Digest,
}

impl<'a> Comparison<'a> {
    /// Returns the condition that `word` names; `None` if `version` does not have it.
    pub(super) fn of(version: Version, word: Word, operand: &'a [u8]) -> Option<Self> {
        let (subject, wants_equal) = match (version, word) {
            (Version::Redis84 | Version::Valkey9, IFEQ) => (Subject::Value, true),
            (Version::Redis84, IFNE) => (Subject::Value, false),
            (Version::Redis84, IFDEQ) => (Subject::Digest, true),
            (Version::Redis84, IFDNE) => (Subject::Digest, false),
            _ => return None,
        };
        Some(Self { subject, wants_equal, operand })
    }

    /// Returns whether both are of the same name.
    pub(super) fn is_same_kind(&self, other: &Self) -> bool {
        (self.subject, self.wants_equal) == (other.subject, other.wants_equal)
    }

    /// Returns whether the key's entry meets the condition. A missing key differs from everything. A
    /// collection and a malformed digest are errors, but only of a key that exists.
    pub(super) fn holds(&self, entry: Option<&Entry>) -> Result<bool, Reply> {
        let Some(entry) = entry else { return Ok(!self.wants_equal) };
        let value = entry.text()?;
        let is_equal = match self.subject {
            Subject::Value => **value == *self.operand,
            Subject::Digest => is_digest_of(self.operand, value)?,
        };
        Ok(is_equal == self.wants_equal)
    }
}

/// Returns the digest of a string: XXH3, 64 bits, with leading zeros.
pub(super) fn digest(value: &[u8]) -> String {
    format!("{:0width$x}", xxh3_64(value), width = DIGEST_DIGITS)
}

/// Compares as Redis does: letters in any case. Redis checks only the length, so that other characters than
/// hexadecimal digits equal no digest.
fn is_digest_of(claimed: &[u8], value: &[u8]) -> Result<bool, Reply> {
    if claimed.len() != DIGEST_DIGITS {
        return Err(Reply::error("ERR must be exactly 16 hexadecimal characters"));
    }
    Ok(claimed.eq_ignore_ascii_case(digest(value).as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::digest;

    /// Sources: the documentation of DIGEST, Redis' test `string.tcl`, and XXH3's digest of nothing.
    #[test]
    fn digests_are_those_of_redis() {
        let leading_zeros =
            "v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7626sd";
        for (value, expected) in [
            ("Hello world", "b6acb9d84a38ff74"),
            (leading_zeros, "00006c38adf31777"),
            ("", "2d06800538d394c2"),
        ] {
            assert_eq!(digest(value.as_bytes()), expected, "{value:?}");
        }
    }
}
