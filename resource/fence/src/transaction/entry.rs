//! The write that a check judges.

use dlock::FencingToken;
use serde_json::Value;

use super::Stop;
use crate::rule::{Fence, Fencing, Guard, Receipt, WriteOutcome};
use crate::{BodyDigest, MaxJump, OwnerToken, WriteSeq};

/// The write that a transaction makes: the token of its grant, and the payload of its audit row.
///
/// A token alone is an entry, too. Then a second transaction with the same token is refused as stale, since
/// nothing shows that it is the same holder's.
///
/// # Example
///
/// ```
/// use fence::{Entry, OwnerToken, WriteSeq};
///
/// // The second transaction of the grant with token 34.
/// let owner = OwnerToken::new("b:28999649")?;
/// let entry = Entry::new("34".parse()?).owner(&owner).seq(WriteSeq::new(2).unwrap());
/// let entry = entry.payload(serde_json::json!({ "paid": 12 }));
/// assert_eq!(entry.token(), "34".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub(super) token: FencingToken,
    pub(super) seq: Option<WriteSeq>,
    pub(super) owner: Option<OwnerToken>,
    pub(super) max_jump: Option<MaxJump>,
    payload: Value,
}

impl Entry {
    /// Creates the entry of a plain write, the last of the grant with `token`, without owner and payload.
    pub const fn new(token: FencingToken) -> Self {
        Self { token, seq: None, owner: None, max_jump: None, payload: Value::Null }
    }

    /// Sets the holder. Only then is a retry recognised: [`Stop::Repeated`](crate::Stop::Repeated).
    #[must_use]
    pub fn owner(mut self, owner: &OwnerToken) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// Numbers the write among those of the grant, for a holder with more than one transaction.
    #[must_use]
    pub fn seq(mut self, seq: WriteSeq) -> Self {
        self.seq = Some(seq);
        self
    }

    /// Sets the payload of the audit row. Let it name all that the transaction writes: a retry is recognised
    /// by an equal payload.
    #[must_use]
    pub fn payload(mut self, payload: Value) -> Self {
        self.payload = payload;
        self
    }

    /// Limits the step of the token above the highest one that the resource has accepted: without it, one
    /// write with a token that no lock has granted makes all tokens of the lock stale. Take the limit for the
    /// source of your tokens.
    ///
    /// # Example
    ///
    /// ```
    /// use fence::{Entry, MaxJump};
    ///
    /// // The lock is on Redis, which counts the grants of each key.
    /// let entry = Entry::new("34".parse()?).max_jump(MaxJump::COUNTER);
    /// # Ok::<(), dlock::TokenError>(())
    /// ```
    #[must_use]
    pub fn max_jump(mut self, max_jump: MaxJump) -> Self {
        self.max_jump = Some(max_jump);
        self
    }

    /// Returns the payload as the text whose digest recognises a retry.
    pub fn payload_text(&self) -> String {
        self.payload.to_string()
    }

    /// Returns the fencing token.
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    pub(super) fn digest(&self) -> BodyDigest {
        BodyDigest::of(self.payload_text().as_bytes())
    }

    /// Judges the write by the rule.
    pub(super) fn judge<E>(&self, fence: &mut Fence) -> Result<Receipt, Stop<E>> {
        let guard = Guard::Token { token: self.token, seq: self.seq };
        match fence.write_within(self.max_jump, guard, self.owner.as_ref(), self.digest(), Fencing::On) {
            WriteOutcome::Accepted(receipt) => Ok(receipt),
            WriteOutcome::Refused(refusal) => Err(Stop::Refused(refusal)),
            WriteOutcome::Repeated(receipt) => Err(Stop::Repeated(receipt)),
        }
    }
}

impl From<FencingToken> for Entry {
    fn from(token: FencingToken) -> Self {
        Self::new(token)
    }
}
