//! The write that a check judges, and its parameters in SQL.

use dlock::FencingToken;
use serde_json::Value;

use crate::{BodyDigest, OwnerToken, ResourceKey, TooLarge, WriteSeq, bigint};

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
    payload: Value,
}

impl Entry {
    /// Creates the entry of a plain write, the last of the grant with `token`, without owner and payload.
    pub const fn new(token: FencingToken) -> Self {
        Self { token, seq: None, owner: None, payload: Value::Null }
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

    /// Returns the payload as the text whose digest recognises a retry.
    pub fn payload_text(&self) -> String {
        self.payload.to_string()
    }

    /// Returns the fencing token.
    pub const fn token(&self) -> FencingToken {
        self.token
    }
}

impl From<FencingToken> for Entry {
    fn from(token: FencingToken) -> Self {
        Self::new(token)
    }
}

/// The parameters of [`super::CHECK`], in its order.
#[doc(hidden)]
#[derive(Debug)]
pub struct Parameters {
    pub(super) key: String,
    pub(super) token: i64,
    pub(super) seq: i64,
    pub(super) owner: Option<String>,
    pub(super) digest: BodyDigest,
    pub(super) owner_prefix: Option<String>,
    pub(super) payload: String,
}

impl Parameters {
    pub(super) fn new(key: &ResourceKey, entry: &Entry) -> Result<Self, TooLarge> {
        let seq = match entry.seq.map(WriteSeq::as_u64) {
            None => i64::MAX,
            Some(number) => match i64::try_from(number) {
                Ok(seq) if seq < i64::MAX => seq,
                _ => return Err(TooLarge { what: "sequence number", number }),
            },
        };
        let payload = entry.payload_text();
        Ok(Self {
            key: key.as_str().to_owned(),
            token: bigint(entry.token)?,
            seq,
            owner: entry.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            digest: BodyDigest::of(payload.as_bytes()),
            owner_prefix: entry.owner.as_ref().map(|owner| owner.prefix().to_owned()),
            payload,
        })
    }
}
