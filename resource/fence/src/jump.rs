//! The largest step of a token above the highest one seen: it keeps a broken or hostile client from locking a
//! key for ever with a token that no lock has granted.
//!
//! The rule alone accepts any larger token. One write with the largest number then makes every token that the
//! lock will ever grant stale. The distance between the tokens of two writes depends on their source:
//!
//! | source | a token is | default step | first token of a key |
//! |---|---|---|---|
//! | [`MaxJump::COUNTER`] | the number of grants of this key: Redis, Redlock | 1,000,000 grants | at most the step: it counts from 1 |
//! | [`MaxJump::REVISION`] | the number of writes to the whole cluster: etcd | 2^40 writes | at most 2^48: 100,000 writes a second for 89 years |
//! | [`MaxJump::ZXID`] | an epoch, which each election raises, in the high 32 bits, then a number: ZooKeeper | 1,000 elections | below 2^52: 1,048,576 elections, one a minute for two years |
//! | [`MaxJump::TIME`] | microseconds since 1970: `TokenSource::ServerTime` of Redis and Redlock | 366 days | below 2^53, where the lock stops granting |
//!
//! A step of the default's size locks a key for that many grants, writes, elections or days at most. It
//! limits the damage of one write, not of a client that writes again and again: against such a client
//! authenticate the writers.

use dlock::FencingToken;

use crate::rule::{Fence, Fencing, Guard, Mark, Refusal, WriteOutcome};
use crate::{Beside, BodyDigest, OwnerToken};

/// The largest token that may be a key's first, and the largest step between two tokens of a key.
///
/// # Example
///
/// ```
/// use fence::{MaxJump, Refusal};
///
/// let (seen, got) = ("34".parse()?, "18446744073709551615".parse()?);
/// let refusal = MaxJump::COUNTER.check(Some(seen), got);
/// assert_eq!(refusal, Err(Refusal::Jump { seen: Some(seen), got, max: 1_000_034 }));
/// assert!(MaxJump::COUNTER.check(Some(seen), "35".parse()?).is_ok());
/// # Ok::<(), dlock::TokenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxJump {
    first: u64,
    step: u64,
}

/// The bits of a zxid below its epoch.
const EPOCH_SHIFT: u32 = 32;
const MICROS_PER_DAY: u64 = 24 * 60 * 60 * 1_000_000;

impl MaxJump {
    /// The default for a counter of grants.
    pub const COUNTER: Self = Self::counter(1_000_000);
    /// The default for etcd's revisions.
    pub const REVISION: Self = Self::revision(1 << 40);
    /// The default for ZooKeeper's zxids.
    pub const ZXID: Self = Self::zxid(1_000);
    /// The default for the time of the lock server.
    pub const TIME: Self = Self::time(366 * MICROS_PER_DAY);

    /// Limits a counter to a step of `grants`. The first token of a key is a step from zero.
    pub const fn counter(grants: u64) -> Self {
        Self::new(grants, grants)
    }

    /// Limits a revision of etcd to a step of `writes` to the cluster, and the first token of a key to 2^48.
    pub const fn revision(writes: u64) -> Self {
        Self::new(1 << 48, writes)
    }

    /// Limits a zxid of ZooKeeper to a step of `elections`, and the first token of a key to below 2^52.
    pub const fn zxid(elections: u64) -> Self {
        Self::new((1 << 52) - 1, elections.saturating_mul(1 << EPOCH_SHIFT))
    }

    /// Limits a token that is a time to a step of `micros` microseconds, and the first token of a key to
    /// below 2^53.
    pub const fn time(micros: u64) -> Self {
        Self::new((1 << 53) - 1, micros)
    }

    /// Limits the first token of a key to `first`, and each step to `step`.
    pub const fn new(first: u64, step: u64) -> Self {
        Self { first, step }
    }

    /// Returns the largest token that may be a key's first.
    pub const fn first(self) -> u64 {
        self.first
    }

    /// Returns the largest step between two tokens of a key.
    pub const fn step(self) -> u64 {
        self.step
    }

    /// Returns the largest token that is accepted after `seen`.
    pub const fn max_after(self, seen: Option<FencingToken>) -> u64 {
        match seen {
            None => self.first,
            Some(seen) => seen.as_u64().saturating_add(self.step),
        }
    }

    /// Checks the token `got` against `seen`, the highest one seen.
    ///
    /// # Errors
    ///
    /// [`Refusal::Jump`] if it is too large. A stale token passes: that is for the rule to judge.
    pub fn check(self, seen: Option<FencingToken>, got: FencingToken) -> Result<(), Refusal> {
        let max = self.max_after(seen);
        if got.as_u64() > max { Err(Refusal::Jump { seen, got, max }) } else { Ok(()) }
    }
}

impl Fence {
    /// Judges a write as [`Fence::write`] does, and before that its token by `max_jump`, if there is one and
    /// fencing is on.
    pub fn write_within(
        &mut self,
        max_jump: Option<MaxJump>,
        guard: Guard,
        owner: Option<&OwnerToken>,
        digest: BodyDigest,
        fencing: Fencing,
    ) -> WriteOutcome {
        self.write_beside_within(max_jump, guard, &Beside::NONE, owner, digest, fencing)
    }

    /// Judges a write as [`Fence::write_beside`] does, and before that its token by `max_jump`, if there is
    /// one and fencing is on. The tokens of `beside` need no limit: those above the own token are ignored.
    pub fn write_beside_within(
        &mut self,
        max_jump: Option<MaxJump>,
        guard: Guard,
        beside: &Beside,
        owner: Option<&OwnerToken>,
        digest: BodyDigest,
        fencing: Fencing,
    ) -> WriteOutcome {
        if let (Guard::Token { token, .. }, Fencing::On, Some(max_jump)) = (guard, fencing, max_jump)
            && let Err(refusal) = max_jump.check(self.max_fence(), token)
        {
            return WriteOutcome::Refused(refusal);
        }
        self.write_beside(guard, beside, owner, digest, fencing)
    }

    /// Judges a claim as [`Fence::claim`] does, and before that its token by `max_jump`, if there is one and
    /// fencing is on.
    ///
    /// # Errors
    ///
    /// The refusal, if it is not accepted.
    pub fn claim_within(
        &mut self,
        max_jump: Option<MaxJump>,
        mark: &Mark,
        fencing: Fencing,
    ) -> Result<(), Refusal> {
        self.claim_beside_within(max_jump, mark, &Beside::NONE, fencing)
    }

    /// Judges a claim as [`Fence::claim_beside`] does, and before that its token by `max_jump`, if there is
    /// one and fencing is on.
    ///
    /// # Errors
    ///
    /// The refusal, if it is not accepted.
    pub fn claim_beside_within(
        &mut self,
        max_jump: Option<MaxJump>,
        mark: &Mark,
        beside: &Beside,
        fencing: Fencing,
    ) -> Result<(), Refusal> {
        if let (Fencing::On, Some(max_jump)) = (fencing, max_jump) {
            max_jump.check(self.max_fence(), mark.position.token())?;
        }
        self.claim_beside(mark, beside, fencing)
    }
}
