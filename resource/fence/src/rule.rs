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
//! Below the highest token, the permits of a semaphore may still write that were live when it was granted:
//! each request names them ([`Beside`]), and each is judged by its own position and owner. A mutex is the
//! case of the empty set. The reasons, and the limits, are in `rule/beside.rs`.
//!
//! Only the last accepted write is remembered, so a retry is known until another write is accepted. A retry
//! that comes later is refused as stale, though its first attempt was applied. Beside other permits that may
//! be soon, since each of their writes counts.
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

mod beside;
mod outcome;
mod position;

use dlock::FencingToken;
use serde::{Deserialize, Serialize};

pub use self::beside::Permit;
use self::beside::{judge_below, permits_below};
pub use self::outcome::{Receipt, Refusal, WriteOutcome};
pub use self::position::{Mark, Position, WriteSeq, judge};
use crate::BodyDigest;
use crate::beside::Beside;
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
    /// The other permits that were live when the highest token was granted, in ascending order of their
    /// tokens, all below it. Empty for a mutex, and if there is no highest token.
    pub beside: Vec<Permit>,
    /// The last accepted write, by which a retry of it is recognised.
    pub last_write: Option<LastWrite>,
    /// The number of accepted writes.
    pub version: u64,
}

impl Fence {
    /// Judges a write of `owner`, guarded by `guard`, of a body with the digest `digest`; remembers it if it
    /// is accepted.
    ///
    /// Without fencing, tokens are not compared. Versions still are, since the writer asked for it.
    ///
    /// For a mutex: a write of a semaphore's permit needs [`Fence::write_beside`].
    pub fn write(
        &mut self,
        guard: Guard,
        owner: Option<&OwnerToken>,
        digest: BodyDigest,
        fencing: Fencing,
    ) -> WriteOutcome {
        self.write_beside(guard, &Beside::NONE, owner, digest, fencing)
    }

    /// Judges a write as [`Fence::write`] does, of a permit that was granted beside the permits `beside`.
    ///
    /// - Above the highest token it is accepted, and its token becomes the highest. The permits beside it
    ///   become those of `beside` below it, each with the position and owner seen of it so far.
    /// - At the highest token, position and owner decide, and `beside` changes nothing: the set of a grant
    ///   never changes, so the first one counts.
    /// - Below it, it is accepted if its token is one of the permits beside the highest, and position and
    ///   owner allow it there. `beside` and the highest token change nothing.
    ///
    /// A conditional write takes no account of `beside`. Without fencing, all of it is recorded, and nothing
    /// refused for its token.
    ///
    /// # Example
    ///
    /// ```
    /// use fence::{Beside, BodyDigest, Fence, Fencing, Guard, Refusal, WriteOutcome};
    ///
    /// let mut fence = Fence::default();
    /// let mut write = |token: &str, beside: &str| {
    ///     let (guard, beside) = (Guard::token(token.parse().unwrap()), beside.parse().unwrap());
    ///     fence.write_beside(guard, &beside, None, BodyDigest::of(b"x"), Fencing::On)
    /// };
    /// // 7 and 8 were live when 9 was granted; 6 had ended.
    /// assert!(matches!(write("9", "7,8"), WriteOutcome::Accepted(_)));
    /// assert!(matches!(write("7", ""), WriteOutcome::Accepted(_)));
    /// let (seen, got) = ("9".parse()?, "6".parse()?);
    /// assert_eq!(write("6", ""), WriteOutcome::Refused(Refusal::Stale { seen, got }));
    /// # Ok::<(), dlock::TokenError>(())
    /// ```
    pub fn write_beside(
        &mut self,
        guard: Guard,
        beside: &Beside,
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
                let mark = Mark { position: Position::write(token, seq), owner: owner.cloned() };
                Some(self.raise(&mark, beside))
            }
            Guard::Version { .. } => None,
        };
        self.last_write = Some(LastWrite { guard, owner: owner.cloned(), digest });
        WriteOutcome::Accepted(Receipt { version: self.version, max_fence })
    }

    /// Judges a write that is no retry.
    fn judge(&self, guard: Guard, owner: Option<&OwnerToken>, fencing: Fencing) -> Result<(), Refusal> {
        match guard {
            Guard::Token { token, seq } => self.judge_token(Position::write(token, seq), owner),
            Guard::Version { expected } => match (fencing, self.max_fence()) {
                (Fencing::On, Some(seen)) => Err(Refusal::Fenced { seen }),
                _ if expected == self.version => Ok(()),
                _ => Err(Refusal::Conflict { expected, current: self.version }),
            },
        }
    }

    /// Judges a position, against the highest one or against that of a permit beside it.
    fn judge_token(&self, position: Position, owner: Option<&OwnerToken>) -> Result<(), Refusal> {
        match self.max_fence() {
            Some(seen) if position.token() < seen => judge_below(&self.beside, seen, position, owner),
            _ => judge(self.highest.as_ref(), position, owner),
        }
    }

    /// Judges a claim at `mark`, and remembers it if it is accepted. For a mutex: a claim of a semaphore's
    /// permit needs [`Fence::claim_beside`].
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
        self.claim_beside(mark, &Beside::NONE, fencing)
    }

    /// Judges a claim as [`Fence::claim`] does, of a permit that was granted beside the permits `beside`: by
    /// the rule of [`Fence::write_beside`]. From then on no permit can write that had ended before the
    /// claimed one was granted; those that were live beside it still can.
    ///
    /// # Errors
    ///
    /// The refusal, if it is not accepted.
    pub fn claim_beside(&mut self, mark: &Mark, beside: &Beside, fencing: Fencing) -> Result<(), Refusal> {
        if fencing == Fencing::On {
            self.judge_token(mark.position, mark.owner.as_ref())?;
        }
        self.raise(mark, beside);
        Ok(())
    }

    /// Returns the highest token seen.
    pub fn max_fence(&self) -> Option<FencingToken> {
        self.highest.as_ref().map(|mark| mark.position.token())
    }

    /// Returns true if owner, guard and body are those of the last accepted write. A claim in between makes
    /// no difference: the write was applied, and the answer says so.
    fn is_retry(&self, guard: Guard, owner: Option<&OwnerToken>, digest: BodyDigest) -> bool {
        let is_last =
            |last: &LastWrite| last.guard == guard && last.owner.as_ref() == owner && last.digest == digest;
        owner.is_some() && self.last_write.as_ref().is_some_and(is_last)
    }

    /// Moves the highest position up to `mark`, or that of a permit beside it, never down. Returns the
    /// highest token.
    fn raise(&mut self, mark: &Mark, beside: &Beside) -> FencingToken {
        let token = mark.position.token();
        match &self.highest {
            Some(highest) if token < highest.position.token() => {
                beside::raise(&mut self.beside, mark);
                return highest.position.token();
            }
            Some(highest) if mark.position <= highest.position => {}
            Some(highest) if token == highest.position.token() => self.highest = Some(mark.clone()),
            highest => {
                self.beside = permits_below(token, beside, highest.as_ref(), &self.beside);
                self.highest = Some(mark.clone());
            }
        }
        token
    }
}
