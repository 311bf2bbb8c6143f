//! The operations on a resource: writes and reads, and what a read returns.

use bytes::Bytes;
use dlock::FencingToken;

use crate::OwnerToken;
use crate::fence::{Guard, Mark, Position, Refusal};

/// A write to a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The condition for applying it.
    pub guard: Guard,
    /// The owner token of the grant; of a conditional write, any name that its writer gave to it. Without it
    /// a retry looks like a duplicate, and is refused.
    pub owner: Option<OwnerToken>,
    /// The new value.
    pub body: Bytes,
}

/// A read of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The token to claim: from then on no older holder can write. `None` reads and changes nothing.
    pub claim: Option<FencingToken>,
    /// The owner token of the reader's grant. An unfenced read may name it too, so that histories show the
    /// reader.
    pub owner: Option<OwnerToken>,
}

impl Read {
    /// Returns the position and owner of the claim; `None` for an unfenced read.
    pub fn mark(&self) -> Option<Mark> {
        self.claim.map(|token| Mark { position: Position::claim(token), owner: self.owner.clone() })
    }
}

/// A resource at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its value; `None` if it was never written.
    pub value: Option<Bytes>,
    /// The number of accepted writes.
    pub version: u64,
    /// The highest token seen; `None` if there was none.
    pub max_fence: Option<FencingToken>,
}

/// The outcome of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The resource as it is; a claim was kept.
    Read(Snapshot),
    /// The claim was refused.
    Refused(Refusal),
}
