//! A row of `fence_position`, and the fence that it holds.

use dlock::FencingToken;

use crate::rule::{Fence, Guard, LastWrite, Mark, Position};
use crate::{BodyDigest, OwnerToken};

/// A row of `fence_position`. The plain write has the sequence number `u64::MAX`.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) token: u64,
    pub(super) seq: u64,
    pub(super) owner: Option<String>,
    pub(super) sha256: Vec<u8>,
    pub(super) version: u64,
}

impl Row {
    /// Returns the fence of the row. Each accepted write raised it, so its highest position is the last
    /// write's. The error says what is wrong with the row.
    pub(super) fn into_fence(self) -> Result<Fence, &'static str> {
        let token = FencingToken::new(self.token).ok_or("a token is not positive")?;
        let guard = Guard::from_parts(self.token, self.seq).ok_or("a sequence number is not positive")?;
        let owner = self.owner.as_deref().map(OwnerToken::new).transpose();
        let owner = owner.map_err(|_| "an owner token is no text")?;
        let digest: [u8; 32] = self.sha256.try_into().map_err(|_| "a digest has not 32 bytes")?;
        Ok(Fence {
            highest: Some(Mark { position: Position::from_parts(token, self.seq), owner: owner.clone() }),
            beside: Vec::new(),
            last_write: Some(LastWrite { guard, owner, digest: BodyDigest::from_bytes(digest) }),
            version: self.version,
        })
    }
}
