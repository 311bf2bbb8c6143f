//! The parameters of the statement.

use super::{Entry, ResourceKey};
use crate::{BodyDigest, MaxJump, TooLarge, WriteSeq, bigint};

/// The parameters of [`super::CHECK`], in its order.
#[derive(Debug)]
pub(super) struct Parameters {
    pub(super) key: String,
    pub(super) token: i64,
    pub(super) seq: i64,
    pub(super) owner: Option<String>,
    pub(super) digest: BodyDigest,
    pub(super) owner_prefix: Option<String>,
    pub(super) payload: String,
    pub(super) first_max: i64,
    pub(super) step_max: i64,
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
        // No token is larger than a bigint, so neither is a limit.
        let limit = |of: fn(MaxJump) -> u64| {
            entry.max_jump.map_or(i64::MAX, |max_jump| of(max_jump).try_into().unwrap_or(i64::MAX))
        };
        Ok(Self {
            key: key.as_str().to_owned(),
            token: bigint(entry.token)?,
            seq,
            owner: entry.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            digest: entry.digest(),
            owner_prefix: entry.owner.as_ref().map(|owner| owner.prefix().to_owned()),
            payload: entry.payload_text(),
            first_max: limit(MaxJump::first),
            step_max: limit(MaxJump::step),
        })
    }
}
