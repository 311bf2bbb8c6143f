//! The fence rule, the only line that keeps a late writer out. Pure: no clock, no store, no network.
//!
//! A request stands at a [`Position`]: its fencing token, then a sequence number within the token. A claim (the fenced
//! read) is `(token, 0)`, the numbered writes of one holder count up from 1, and a plain write is the token's last. A
//! request is accepted if its position is above the highest seen. So after the claim `(34, 0)` a delayed write of 33 is
//! refused though 34 has not written yet, and the plain write of 34 is accepted; after that nothing of 34 is, which is
//! the contract of the lab: a token at or below the highest seen is refused.
//!
//! At the highest token itself the owner decides too, since a failover of the lock server can hand one token out twice:
//!
//! | the token's owner so far | this request's owner | |
//! |---|---|---|
//! | `a` | `a` | by position; the very same write again is a retry, and gets the first answer |
//! | `a` | `b` | refused as foreign |
//! | none | none | by position; a retry can't be told from a duplicate, and is refused |
//! | one gave a name, the other none | | refused as stale: nothing shows that they are one holder |
//!
//! Only the last accepted write is remembered, so a retry is known until another write is accepted. A retry that comes
//! later is refused as stale, though its first attempt was applied.
//!
//! A conditional write ([`Condition`]) carries no token: it names the version that its writer has read, and is accepted if
//! that is still the version. It is the way to do without a lock, and no way around one: a key that has seen a token
//! refuses conditional writes as long as fencing is on. (A holder that stopped for long would otherwise be overwritten, or
//! overwrite, with nothing to tell the two apart.) Nor is there a way back: who once locks a key goes on locking it.
//!
//! Source: Kleppmann, "How to do distributed locking" (2016); the positions within a token are ours. Of the conditional
//! write: Kung and Robinson, "On Optimistic Methods for Concurrency Control" (1981); RFC 9110, section 13.1.

use std::cmp::Ordering;

use dlock::FencingToken;

use crate::digest::BodyDigest;
use crate::owner::OwnerToken;

/// Whether the resource refuses stale tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fencing {
    /// The rule holds.
    #[default]
    On,
    /// The unsafe baseline: every well-formed write is applied. The highest token is kept all the same.
    Off,
}

/// The number of a write among those of one grant: 1 to `u64::MAX - 1`. Zero is the claim, the last is the plain write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteSeq(u64);

impl WriteSeq {
    /// The first write of a grant.
    pub const FIRST: Self = Self(1);

    /// The write numbered `number`, if a numbered write can have that number.
    pub const fn new(number: u64) -> Option<Self> {
        match number {
            0 | u64::MAX => None,
            _ => Some(Self(number)),
        }
    }

    /// The number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The write after this one; `None` at the end of the range.
    pub const fn next(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }
}

/// Where a request stands: tokens compare first, then the sequence within one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    token: FencingToken,
    seq: u64,
}

impl Position {
    /// A fenced read, which claims the token: below every write of it.
    pub const fn claim(token: FencingToken) -> Self {
        Self { token, seq: 0 }
    }

    /// A write: numbered, or the plain one, which stands above all numbered ones.
    pub const fn write(token: FencingToken, seq: Option<WriteSeq>) -> Self {
        match seq {
            Some(WriteSeq(seq)) => Self { token, seq },
            None => Self { token, seq: u64::MAX },
        }
    }

    /// Reads what [`Position::token`] and [`Position::seq`] gave.
    pub const fn from_parts(token: FencingToken, seq: u64) -> Self {
        Self { token, seq }
    }

    /// The fencing token.
    pub const fn token(self) -> FencingToken {
        self.token
    }

    /// The place within the token: 0 for a claim, `u64::MAX` for a plain write.
    pub const fn seq(self) -> u64 {
        self.seq
    }

    const fn is_claim(self) -> bool {
        self.seq == 0
    }
}

/// A position and who stood there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where.
    pub position: Position,
    /// Who, if the request said so.
    pub owner: Option<OwnerToken>,
}

/// What a write without a token asks for: to be applied only if nothing has been since its writer read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The version that the writer has read; zero if the resource had never been written.
    pub expected: u64,
    /// The writer's name for this write. Without it a retry can't be told from another's write.
    pub owner: Option<OwnerToken>,
}

/// What let a write pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Its fencing token.
    Fenced(Mark),
    /// The version that it named.
    Conditional(Condition),
}

impl Pass {
    const fn owner(&self) -> Option<&OwnerToken> {
        match self {
            Self::Fenced(Mark { owner, .. }) | Self::Conditional(Condition { owner, .. }) => owner.as_ref(),
        }
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Its position is not above the highest seen.
    Stale,
    /// Its token is the highest seen, but another owner's.
    ForeignOwner,
}

/// A refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The highest token seen.
    pub seen: FencingToken,
    /// The request's token.
    pub got: FencingToken,
}

/// What the writer of an accepted write is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// How many writes the resource has accepted, this one included.
    pub version: u64,
    /// The highest token seen when the write was applied.
    pub max_fence: FencingToken,
}

/// How a write was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It was applied.
    Accepted(Receipt),
    /// It had been applied before; this is the first answer again.
    Repeated(Receipt),
    /// It was not applied.
    Refused(Refusal),
}

/// How a conditional write was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionalOutcome {
    /// It was applied.
    Accepted {
        /// How many writes the resource has accepted, this one included.
        version: u64,
    },
    /// It had been applied before; this is the first answer again.
    Repeated {
        /// How many writes the resource has accepted: this one was the last.
        version: u64,
    },
    /// It was not applied: the version is another one.
    Conflict {
        /// The version that it named.
        expected: u64,
        /// The version that the resource has.
        current: u64,
    },
    /// It was not applied: the key has seen a fencing token, and takes no writes without one.
    Fenced {
        /// The highest token seen.
        seen: FencingToken,
    },
}

/// What the resource remembers of a key in order to judge the next request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    /// The highest position seen, of a claim or a write.
    pub highest: Option<Mark>,
    /// The last accepted write: what let it pass, and what it wrote.
    pub last_write: Option<(Pass, BodyDigest)>,
    /// How many writes were accepted.
    pub version: u64,
}

/// The rule: may a request of `owner` at `position` pass, when `highest` is the highest seen?
///
/// # Errors
///
/// The refusal, if not.
pub fn judge(highest: Option<&Mark>, position: Position, owner: Option<&OwnerToken>) -> Result<(), Refusal> {
    let Some(highest) = highest else { return Ok(()) };
    let (seen, got) = (highest.position.token, position.token);
    let reason = match got.cmp(&seen) {
        Ordering::Greater => return Ok(()),
        Ordering::Less => Reason::Stale,
        Ordering::Equal => match judge_equal_tokens(highest, position, owner) {
            None => return Ok(()),
            Some(reason) => reason,
        },
    };
    Err(Refusal { reason, seen, got })
}

fn judge_equal_tokens(highest: &Mark, position: Position, owner: Option<&OwnerToken>) -> Option<Reason> {
    match (highest.owner.as_ref(), owner) {
        (Some(holder), Some(owner)) if holder != owner => Some(Reason::ForeignOwner),
        (Some(_), None) | (None, Some(_)) => Some(Reason::Stale),
        // Claiming again what one has is idempotent.
        _ if position > highest.position || position.is_claim() => None,
        _ => Some(Reason::Stale),
    }
}

impl Fence {
    /// Judges a write at `mark` of a body with the digest `digest`, and remembers it if it is accepted.
    pub fn write(&mut self, mark: Mark, digest: BodyDigest, fencing: Fencing) -> WriteOutcome {
        let pass = Pass::Fenced(mark.clone());
        if fencing == Fencing::On {
            if self.is_retry(&pass, digest) {
                return WriteOutcome::Repeated(Receipt {
                    version: self.version,
                    max_fence: mark.position.token,
                });
            }
            if let Err(refusal) = judge(self.highest.as_ref(), mark.position, mark.owner.as_ref()) {
                return WriteOutcome::Refused(refusal);
            }
        }
        self.version += 1;
        let max_fence = self.raise(&mark);
        self.last_write = Some((pass, digest));
        WriteOutcome::Accepted(Receipt { version: self.version, max_fence })
    }

    /// Judges a write on `condition` of a body with the digest `digest`, and remembers it if it is accepted. Without
    /// fencing the version is compared all the same: it is the caller's own wish.
    pub fn write_if(
        &mut self,
        condition: Condition,
        digest: BodyDigest,
        fencing: Fencing,
    ) -> ConditionalOutcome {
        let (expected, current) = (condition.expected, self.version);
        let pass = Pass::Conditional(condition);
        if self.is_retry(&pass, digest) {
            return ConditionalOutcome::Repeated { version: current };
        }
        if let (Fencing::On, Some(seen)) = (fencing, self.max_fence()) {
            return ConditionalOutcome::Fenced { seen };
        }
        if expected != current {
            return ConditionalOutcome::Conflict { expected, current };
        }
        self.version += 1;
        self.last_write = Some((pass, digest));
        ConditionalOutcome::Accepted { version: self.version }
    }

    /// Judges a claim at `mark`, and remembers it if it is accepted.
    ///
    /// # Errors
    ///
    /// The refusal, if it is not.
    pub fn claim(&mut self, mark: &Mark, fencing: Fencing) -> Result<(), Refusal> {
        if fencing == Fencing::On {
            judge(self.highest.as_ref(), mark.position, mark.owner.as_ref())?;
        }
        self.raise(mark);
        Ok(())
    }

    /// The highest token seen.
    pub fn max_fence(&self) -> Option<FencingToken> {
        self.highest.as_ref().map(|mark| mark.position.token)
    }

    /// The same owner, position or condition, and body as the last accepted write. A claim in between does not make it
    /// less of a retry: it was applied, and says so.
    fn is_retry(&self, pass: &Pass, digest: BodyDigest) -> bool {
        let same = |(last, body): &(Pass, BodyDigest)| last == pass && *body == digest;
        pass.owner().is_some() && self.last_write.as_ref().is_some_and(same)
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
