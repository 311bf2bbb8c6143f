//! The position of a request, and the rule over the positions of one token.

use std::cmp::Ordering;

use dlock::FencingToken;

use super::outcome::Refusal;
use crate::owner::OwnerToken;

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
