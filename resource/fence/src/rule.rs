//! The fence rule, which keeps a late writer out. Pure: no clock, no store, no network.
//!
//! A request has a [`Position`]: its fencing token, then a sequence number within the token. A claim (the
//! fenced read) is `(token, 0)`, the numbered writes of one holder count up from 1, and a plain write is the
//! token's last. A request is accepted if its position is above the highest seen. So after the claim
//! `(34, 0)` a delayed write of 33 is refused although 34 has not written yet, and the plain write of 34 is
//! accepted. After that, no further write of 34 is accepted: its position is not above the highest seen.
//!
//! At the highest token itself the owner decides too, since a failover of the lock server can hand one token
//! out twice:
//!
//! | the token's owner so far | this request's owner | |
//! |---|---|---|
//! | `a` | `a` | by position; the very same write again is a retry, and gets the first answer |
//! | `a` | `b` | refused as foreign |
//! | none | none | by position; a retry looks like a duplicate, and is refused |
//! | one gave a name, the other none | | refused as stale: nothing shows that they are one holder |
//!
//! Only the last accepted write is remembered, so a retry is known until another write is accepted. A retry
//! that comes later is refused as stale, though its first attempt was applied.
//!
//! A conditional write ([`Guard::Version`]) carries no token: it names the version that its writer has read,
//! and is accepted if the resource still has that version. It replaces a lock, and does not bypass one: a key
//! that has seen a token refuses conditional writes as long as fencing is on. (Otherwise a holder that paused
//! for long could overwrite conditional writes, or be overwritten by them, unnoticed.) A key that was once
//! written under a lock keeps that rule.
//!
//! Source: Kleppmann, "How to do distributed locking" (2016); the positions within a token are ours. Of the
//! conditional write: Kung and Robinson, "On Optimistic Methods for Concurrency Control" (1981); RFC 9110,
//! section 13.1.

mod outcome;

use std::cmp::Ordering;

use dlock::FencingToken;
use serde::{Deserialize, Serialize};

pub use self::outcome::{Receipt, Refusal, WriteOutcome};
use crate::BodyDigest;
use crate::owner::OwnerToken;

/// The switch for refusing stale tokens. In text and in JSON it is `on` or `off`.
///
/// # Example
///
/// ```
/// use fence::Fencing;
///
/// assert_eq!(Fencing::default(), Fencing::On);
/// assert_eq!(Fencing::BOTH.map(Fencing::as_str), ["off", "on"]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fencing {
    /// The rule holds.
    #[default]
    On,
    /// The unsafe baseline: every well-formed write is applied. The highest token is still recorded.
    Off,
}

impl Fencing {
    /// Both, the unsafe baseline first.
    pub const BOTH: [Self; 2] = [Self::Off, Self::On];

    /// Returns `on` or `off`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// The number of a write among those of one grant: 1 to `u64::MAX - 1`. Zero is the claim, the last is the
/// plain write.
///
/// # Example
///
/// ```
/// use fence::WriteSeq;
///
/// assert_eq!(WriteSeq::FIRST.next(), WriteSeq::new(2));
/// // The claim and the plain write have no number.
/// assert_eq!((WriteSeq::new(0), WriteSeq::new(u64::MAX)), (None, None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteSeq(u64);

impl WriteSeq {
    /// The first write of a grant.
    pub const FIRST: Self = Self(1);

    /// Returns the write numbered `number`, if a numbered write can have that number.
    pub const fn new(number: u64) -> Option<Self> {
        match number {
            0 | u64::MAX => None,
            _ => Some(Self(number)),
        }
    }

    /// Returns the number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the write after this one; `None` at the end of the range.
    pub const fn next(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }
}

/// The position of a request: tokens compare first, then the sequence within one token.
///
/// # Example
///
/// ```
/// use fence::{Position, WriteSeq};
///
/// let (old, new) = ("33".parse()?, "34".parse()?);
/// let first = Some(WriteSeq::FIRST);
/// assert!(Position::write(old, None) < Position::claim(new));
/// assert!(Position::claim(new) < Position::write(new, first));
/// assert!(Position::write(new, first) < Position::write(new, None));
/// # Ok::<(), dlock::TokenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    token: FencingToken,
    seq: u64,
}

impl Position {
    /// Returns the position of a fenced read, which claims the token: below every write of it.
    pub const fn claim(token: FencingToken) -> Self {
        Self { token, seq: 0 }
    }

    /// Returns the position of a write: numbered, or the plain one, which is above all numbered ones.
    pub const fn write(token: FencingToken, seq: Option<WriteSeq>) -> Self {
        match seq {
            Some(WriteSeq(seq)) => Self { token, seq },
            None => Self { token, seq: u64::MAX },
        }
    }

    /// Builds the position with these parts: see [`Position::token`] and [`Position::seq`].
    pub const fn from_parts(token: FencingToken, seq: u64) -> Self {
        Self { token, seq }
    }

    /// Returns the fencing token.
    pub const fn token(self) -> FencingToken {
        self.token
    }

    /// Returns the place within the token: 0 for a claim, `u64::MAX` for a plain write.
    pub const fn seq(self) -> u64 {
        self.seq
    }

    const fn is_claim(self) -> bool {
        self.seq == 0
    }
}

/// A position and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The position.
    pub position: Position,
    /// The owner, if the request named it.
    pub owner: Option<OwnerToken>,
}

/// The guard of a write: the condition for applying it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The writer's grant: no newer holder may have been there.
    Token {
        /// The fencing token of the grant.
        token: FencingToken,
        /// The number of this write among those of the grant; `None` for the plain write, the grant's last.
        seq: Option<WriteSeq>,
    },
    /// The version that the writer has read: nothing may have been written since. A conditional write,
    /// without a lock.
    Version {
        /// The version; zero if the resource had never been written.
        expected: u64,
    },
}

impl Guard {
    /// Returns a plain write of the grant with `token`.
    pub const fn token(token: FencingToken) -> Self {
        Self::Token { token, seq: None }
    }

    /// Returns the guard as two numbers, for a store: token and sequence, or zero, which no grant has, and
    /// the version.
    pub const fn to_parts(self) -> (u64, u64) {
        match self {
            Self::Token { token, seq } => (token.as_u64(), Position::write(token, seq).seq()),
            Self::Version { expected } => (0, expected),
        }
    }

    /// Returns the guard with these numbers from [`Guard::to_parts`]; `None` if no write can have it.
    pub const fn from_parts(token: u64, number: u64) -> Option<Self> {
        match (FencingToken::new(token), number) {
            (None, expected) => Some(Self::Version { expected }),
            (Some(token), u64::MAX) => Some(Self::Token { token, seq: None }),
            (Some(token), number) => match WriteSeq::new(number) {
                Some(seq) => Some(Self::Token { token, seq: Some(seq) }),
                None => None,
            },
        }
    }
}

/// The last accepted write of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastWrite {
    /// Its guard.
    pub guard: Guard,
    /// Its writer, if the request named it.
    pub owner: Option<OwnerToken>,
    /// The digest of its body.
    pub digest: BodyDigest,
}

/// The state of a key, against which the next request is judged.
///
/// # Example
///
/// ```
/// use fence::{BodyDigest, Fence, Fencing, Guard, OwnerToken, Refusal, WriteOutcome};
///
/// // In a service of your own: keep the fence beside the value, and change both in one transaction.
/// let mut fence = Fence::default();
/// let mut write = |token, owner, body: &[u8]| {
///     fence.write(Guard::token(token), Some(owner), BodyDigest::of(body), Fencing::On)
/// };
/// let (a, b) = (OwnerToken::new("a:7f3c9e12")?, OwnerToken::new("b:28999649")?);
/// let (old, new) = ("33".parse()?, "34".parse()?);
/// assert!(matches!(write(new, &b, b"paid"), WriteOutcome::Accepted(_)));
/// assert!(matches!(write(new, &b, b"paid"), WriteOutcome::Repeated(_)));
/// assert_eq!(write(old, &a, b"open"), WriteOutcome::Refused(Refusal::Stale { seen: new, got: old }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    /// The highest position seen, of a claim or a write.
    pub highest: Option<Mark>,
    /// The last accepted write, by which a retry of it is recognised.
    pub last_write: Option<LastWrite>,
    /// The number of accepted writes.
    pub version: u64,
}

/// Judges a request of `owner` at `position` against `highest`, the highest position seen.
///
/// # Errors
///
/// The refusal, if it may not pass.
///
/// # Example
///
/// ```
/// use fence::{Mark, Position, judge};
///
/// // The holder of token 34 has claimed the resource, and has not written yet.
/// let highest = Mark { position: Position::claim("34".parse()?), owner: None };
/// assert!(judge(Some(&highest), Position::write("33".parse()?, None), None).is_err());
/// assert!(judge(Some(&highest), Position::write("34".parse()?, None), None).is_ok());
/// # Ok::<(), dlock::TokenError>(())
/// ```
pub fn judge(highest: Option<&Mark>, position: Position, owner: Option<&OwnerToken>) -> Result<(), Refusal> {
    let Some(highest) = highest else { return Ok(()) };
    let (seen, got) = (highest.position.token, position.token);
    match got.cmp(&seen) {
        Ordering::Greater => Ok(()),
        Ordering::Less => Err(Refusal::Stale { seen, got }),
        Ordering::Equal => judge_equal_tokens(highest, position, owner),
    }
}

fn judge_equal_tokens(highest: &Mark, position: Position, owner: Option<&OwnerToken>) -> Result<(), Refusal> {
    let (seen, got) = (highest.position.token, position.token);
    match (highest.owner.as_ref(), owner) {
        (Some(holder), Some(owner)) if holder != owner => Err(Refusal::ForeignOwner { seen, got }),
        (Some(_), None) | (None, Some(_)) => Err(Refusal::Stale { seen, got }),
        // Claiming one's own token again is idempotent.
        _ if position > highest.position || position.is_claim() => Ok(()),
        _ => Err(Refusal::Stale { seen, got }),
    }
}

impl Fence {
    /// Judges a write of `owner`, guarded by `guard`, of a body with the digest `digest`; remembers it if it
    /// is accepted.
    ///
    /// Without fencing, tokens are not compared. Versions still are, since the writer asked for it.
    pub fn write(
        &mut self,
        guard: Guard,
        owner: Option<&OwnerToken>,
        digest: BodyDigest,
        fencing: Fencing,
    ) -> WriteOutcome {
        let is_judged = fencing == Fencing::On || matches!(guard, Guard::Version { .. });
        if is_judged && self.is_retry(guard, owner, digest) {
            let max_fence = match guard {
                Guard::Token { token, .. } => Some(token),
                Guard::Version { .. } => None,
            };
            return WriteOutcome::Repeated(Receipt { version: self.version, max_fence });
        }
        if is_judged && let Err(refusal) = self.judge(guard, owner, fencing) {
            return WriteOutcome::Refused(refusal);
        }
        self.version += 1;
        let max_fence = match guard {
            Guard::Token { token, seq } => {
                Some(self.raise(&Mark { position: Position::write(token, seq), owner: owner.cloned() }))
            }
            Guard::Version { .. } => None,
        };
        self.last_write = Some(LastWrite { guard, owner: owner.cloned(), digest });
        WriteOutcome::Accepted(Receipt { version: self.version, max_fence })
    }

    /// Judges a write that is no retry.
    fn judge(&self, guard: Guard, owner: Option<&OwnerToken>, fencing: Fencing) -> Result<(), Refusal> {
        match guard {
            Guard::Token { token, seq } => judge(self.highest.as_ref(), Position::write(token, seq), owner),
            Guard::Version { expected } => match (fencing, self.max_fence()) {
                (Fencing::On, Some(seen)) => Err(Refusal::Fenced { seen }),
                _ if expected == self.version => Ok(()),
                _ => Err(Refusal::Conflict { expected, current: self.version }),
            },
        }
    }

    /// Judges a claim at `mark`, and remembers it if it is accepted.
    ///
    /// # Errors
    ///
    /// The refusal, if it is not.
    ///
    /// # Example
    ///
    /// ```
    /// use fence::{Fence, Fencing, Mark, Position};
    ///
    /// let mut fence = Fence::default();
    /// let claim = |token| Mark { position: Position::claim(token), owner: None };
    /// assert!(fence.claim(&claim("34".parse()?), Fencing::On).is_ok());
    /// assert!(fence.claim(&claim("33".parse()?), Fencing::On).is_err());
    /// assert_eq!(fence.max_fence(), Some("34".parse()?));
    /// # Ok::<(), dlock::TokenError>(())
    /// ```
    pub fn claim(&mut self, mark: &Mark, fencing: Fencing) -> Result<(), Refusal> {
        if fencing == Fencing::On {
            judge(self.highest.as_ref(), mark.position, mark.owner.as_ref())?;
        }
        self.raise(mark);
        Ok(())
    }

    /// Returns the highest token seen.
    pub fn max_fence(&self) -> Option<FencingToken> {
        self.highest.as_ref().map(|mark| mark.position.token)
    }

    /// Returns true if owner, guard and body are those of the last accepted write. A claim in between makes
    /// no difference: the write was applied, and the answer says so.
    fn is_retry(&self, guard: Guard, owner: Option<&OwnerToken>, digest: BodyDigest) -> bool {
        let is_last =
            |last: &LastWrite| last.guard == guard && last.owner.as_ref() == owner && last.digest == digest;
        owner.is_some() && self.last_write.as_ref().is_some_and(is_last)
    }

    /// Moves the highest position up to `mark`, never down, and returns its token.
    fn raise(&mut self, mark: &Mark) -> FencingToken {
        match &self.highest {
            Some(highest) if highest.position >= mark.position => highest.position.token,
            _ => {
                self.highest = Some(mark.clone());
                mark.position.token
            }
        }
    }
}
