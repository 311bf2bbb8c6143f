//! The record of a key as bytes, for stores that swap it as a whole: one line of JSON, then the value if it
//! is small.

use bytes::Bytes;
use dlock::FencingToken;
use serde::{Deserialize, Serialize};

use super::{CHANGES_MAX, FenceChange, SetOutcome, Snapshot, StoreError, Write};
use crate::fence::{
    Beside, Fence, Fencing, Guard, LastWrite, Mark, MaxJump, Permit, Position, Refusal, WriteOutcome,
};
use crate::hex::{hex, unhex};
use crate::{BodyDigest, OwnerToken};

/// The version of the format. A program refuses a record of another version.
const FORMAT: u32 = 1;

/// The size up to which a value is part of the record, so that a write is one operation, and so is a read.
pub(super) const INLINE_BYTES_MAX: usize = 4096;

/// The place of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Body {
    /// There is no value yet.
    #[default]
    None,
    /// The record contains it.
    Inline(Bytes),
    /// The object or file with this name contains it, and nothing else is ever written there.
    Named(String),
}

/// The whole state of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) fence: Fence,
    pub(super) body: Body,
    /// The changes of the fence by operators, the oldest first; at most [`CHANGES_MAX`].
    pub(super) changes: Vec<FenceChange>,
    /// The name of the call that stored this record. No two records of a key share it, so no two records have
    /// the same bytes.
    pub(super) stored_by: String,
    /// The name of the call whose write was accepted last.
    pub(super) written_by: String,
    /// The number of sweeps that may have deleted bodies of calls in progress.
    pub(super) sweeps: u64,
}

/// The outcome of judging a request, and whether the record has changed.
pub(super) struct Judged<T> {
    pub(super) outcome: T,
    pub(super) is_changed: bool,
}

impl Record {
    /// Judges a write. The caller places the body of an accepted one.
    pub(super) fn write(
        &mut self,
        max_jump: Option<MaxJump>,
        write: &Write,
        beside: &Beside,
        digest: BodyDigest,
        fencing: Fencing,
    ) -> Judged<WriteOutcome> {
        let Write { guard, owner, .. } = write;
        let outcome =
            self.fence.write_beside_within(max_jump, *guard, beside, owner.as_ref(), digest, fencing);
        Judged { outcome, is_changed: matches!(outcome, WriteOutcome::Accepted(_)) }
    }

    /// Judges the claim of a read.
    pub(super) fn claim(
        &mut self,
        max_jump: Option<MaxJump>,
        mark: &Mark,
        beside: &Beside,
        fencing: Fencing,
    ) -> Judged<Result<(), Refusal>> {
        let before = self.fence.clone();
        let outcome = self.fence.claim_beside_within(max_jump, mark, beside, fencing);
        Judged { is_changed: outcome.is_ok() && self.fence != before, outcome }
    }

    /// Sets the fence, and keeps `change` as its record.
    pub(super) fn set_fence(&mut self, change: &FenceChange) -> Judged<SetOutcome> {
        match self.fence.set(change.from, change.to) {
            Err(moved) => Judged { outcome: SetOutcome::Moved(moved), is_changed: false },
            Ok(()) => {
                self.changes.push(change.clone());
                let excess = self.changes.len().saturating_sub(CHANGES_MAX);
                self.changes.drain(..excess);
                Judged { outcome: SetOutcome::Set, is_changed: true }
            }
        }
    }

    /// Returns the snapshot with `value`, which is checked against the digest of the last write.
    pub(super) fn snapshot(&self, value: Option<Bytes>) -> Result<Snapshot, StoreError> {
        if let (Some(value), Some(last)) = (&value, &self.fence.last_write)
            && BodyDigest::of(value) != last.digest
        {
            return Err(StoreError::Corrupt("a value is not the one that was written last"));
        }
        Ok(Snapshot { value, version: self.fence.version, max_fence: self.fence.max_fence() })
    }

    /// Returns the name of the body's object or file, if it has one of its own.
    pub(super) fn body_name(&self) -> Option<&str> {
        match &self.body {
            Body::Named(name) => Some(name),
            Body::None | Body::Inline(_) => None,
        }
    }

    /// Returns the record as bytes, with the name of its key.
    pub(super) fn to_bytes(&self, key: &str) -> Vec<u8> {
        let (place, inline) = match &self.body {
            Body::None => (Place::None, &b""[..]),
            Body::Inline(value) => (Place::Inline, &value[..]),
            Body::Named(name) => (Place::Named(name.clone()), &b""[..]),
        };
        let head = Head {
            format: FORMAT,
            key: key.to_owned(),
            version: self.fence.version,
            highest: self.fence.highest.as_ref().map(Row::of_mark),
            beside: self.fence.beside.iter().map(PermitRow::of).collect(),
            last_write: self
                .fence
                .last_write
                .as_ref()
                .map(|last| (Row::of_write(last), hex(last.digest.as_bytes()))),
            body: place,
            stored_by: self.stored_by.clone(),
            written_by: self.written_by.clone(),
            sweeps: self.sweeps,
            changes: self.changes.iter().map(Change::of).collect(),
        };
        // A structure of texts and numbers is always JSON.
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend_from_slice(inline);
        bytes
    }

    /// Reads a record from its bytes, that of `key` if it is known.
    pub(super) fn from_bytes(bytes: &Bytes, key: Option<&str>) -> Result<Self, StoreError> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or(StoreError::Corrupt("it has no line of JSON"))?;
        let head = serde_json::from_slice::<Head>(&bytes[..end]);
        let head = head.map_err(|_| StoreError::Corrupt("it is not a record of this program"))?;
        if head.format != FORMAT {
            return Err(StoreError::Corrupt("a newer version of this program has written it"));
        }
        if key.is_some_and(|key| key != head.key) {
            return Err(StoreError::Corrupt("it is the record of another key"));
        }
        let body = match head.body {
            Place::None => Body::None,
            Place::Inline => Body::Inline(bytes.slice(end + 1..)),
            Place::Named(name) => Body::Named(name),
        };
        let highest = head.highest.map(Row::into_mark).transpose()?;
        let beside = head.beside.into_iter().map(PermitRow::into_permit).collect::<Result<_, _>>()?;
        let last_write = head.last_write.map(|(row, digest)| row.into_write(&digest)).transpose()?;
        Ok(Self {
            fence: Fence { highest, beside, last_write, version: head.version },
            body,
            changes: head.changes.into_iter().map(Change::into_change).collect(),
            stored_by: head.stored_by,
            written_by: head.written_by,
            sweeps: head.sweeps,
        })
    }
}

/// The line of JSON.
#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    key: String,
    version: u64,
    highest: Option<Row>,
    /// The permits beside the highest token. A record without permits is as it was before there were any; a
    /// program of that time drops them with its next change, so that it refuses more, and never less.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    beside: Vec<PermitRow>,
    last_write: Option<(Row, String)>,
    body: Place,
    stored_by: String,
    written_by: String,
    sweeps: u64,
    changes: Vec<Change>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    None,
    Inline,
    Named(String),
}

/// A mark, or a write as the numbers of [`Guard::to_parts`].
#[derive(Serialize, Deserialize)]
struct Row {
    token: u64,
    number: u64,
    owner: Option<String>,
}

impl Row {
    fn of_mark(mark: &Mark) -> Self {
        Self::of((mark.position.token().as_u64(), mark.position.seq()), mark.owner.as_ref())
    }

    fn of_write(last: &LastWrite) -> Self {
        Self::of(last.guard.to_parts(), last.owner.as_ref())
    }

    fn of((token, number): (u64, u64), owner: Option<&OwnerToken>) -> Self {
        Self { token, number, owner: owner.map(|owner| owner.as_str().to_owned()) }
    }

    fn into_mark(self) -> Result<Mark, StoreError> {
        let token = FencingToken::new(self.token).ok_or(StoreError::Corrupt("a fencing token is zero"))?;
        Ok(Mark { position: Position::from_parts(token, self.number), owner: self.owner()? })
    }

    fn into_write(self, digest: &str) -> Result<LastWrite, StoreError> {
        let guard = Guard::from_parts(self.token, self.number);
        let guard = guard.ok_or(StoreError::Corrupt("a write has the position of a claim"))?;
        let digest = unhex(digest).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let digest = digest.ok_or(StoreError::Corrupt("a digest has not 32 bytes"))?;
        Ok(LastWrite { guard, owner: self.owner()?, digest: BodyDigest::from_bytes(digest) })
    }

    fn owner(&self) -> Result<Option<OwnerToken>, StoreError> {
        let owner = self.owner.as_deref().map(OwnerToken::new).transpose();
        owner.map_err(|_| StoreError::Corrupt("an owner token is no text"))
    }
}

/// A permit: its token, and the mark if one was seen of it.
#[derive(Serialize, Deserialize)]
struct PermitRow {
    token: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen: Option<Row>,
}

impl PermitRow {
    fn of(permit: &Permit) -> Self {
        Self { token: permit.token().as_u64(), seen: permit.mark().map(Row::of_mark) }
    }

    fn into_permit(self) -> Result<Permit, StoreError> {
        match self.seen {
            Some(row) => row.into_mark().map(Permit::Seen),
            None => {
                let token = FencingToken::new(self.token);
                token.map(Permit::Unseen).ok_or(StoreError::Corrupt("the token of a permit is zero"))
            }
        }
    }
}

/// A [`FenceChange`]; a token of zero is none.
#[derive(Serialize, Deserialize)]
struct Change {
    from: u64,
    to: u64,
    who: String,
    reason: String,
    at_millis: u64,
}

impl Change {
    fn of(change: &FenceChange) -> Self {
        let number = |token: Option<FencingToken>| token.map_or(0, FencingToken::as_u64);
        let FenceChange { from, to, who, reason, at_millis } = change.clone();
        Self { from: number(from), to: number(to), who, reason, at_millis }
    }

    fn into_change(self) -> FenceChange {
        let Self { from, to, who, reason, at_millis } = self;
        FenceChange { from: FencingToken::new(from), to: FencingToken::new(to), who, reason, at_millis }
    }
}

/// Returns the records of changes, the newest first.
pub(super) fn newest_first(record: Record) -> Vec<FenceChange> {
    record.changes.into_iter().rev().collect()
}
