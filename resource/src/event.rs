//! What the resource says of itself: the events with the target `resource`, in the vocabulary that logs, traces and the
//! audit share.
//!
//! A store emits them at the moment of decision, while nothing else can decide about the key. So the events of a key
//! stand in the order of its decisions, on a server with many threads too.

use dlock::FencingToken;

use crate::digest::BodyDigest;
use crate::fence::{ConditionalOutcome, Reason, Receipt, Refusal, WriteOutcome, WriteSeq};
use crate::key::ResourceKey;
use crate::owner::OwnerToken;
use crate::store::{ConditionalWrite, Read, ReadOutcome, Snapshot, Write};
use crate::vocabulary::emit;

impl Reason {
    /// The value of the field `outcome`, and of the metrics' label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::ForeignOwner => "owner",
        }
    }
}

/// Tells how `write` was decided: `write_accepted`, `write_repeated` or `write_rejected`.
pub fn write_decided(key: &ResourceKey, write: &Write, digest: BodyDigest, outcome: &WriteOutcome) {
    match outcome {
        WriteOutcome::Accepted(receipt) => write_accepted(key, write, digest, *receipt),
        WriteOutcome::Repeated(receipt) => write_repeated(key, write, digest, *receipt),
        WriteOutcome::Refused(refusal) => write_rejected(key, write, *refusal),
    }
}

/// Tells how `write` was decided: `conditional_accepted`, `conditional_repeated` or `conditional_rejected`.
pub fn conditional_decided(
    key: &ResourceKey,
    write: &ConditionalWrite,
    digest: BodyDigest,
    outcome: &ConditionalOutcome,
) {
    match *outcome {
        ConditionalOutcome::Accepted { version } => {
            conditional_accepted(key, write, digest, version);
        }
        ConditionalOutcome::Repeated { version } => {
            conditional_repeated(key, write, digest, version);
        }
        ConditionalOutcome::Conflict { current, .. } => {
            conditional_rejected(key, write, Some(current), None, "conflict");
        }
        ConditionalOutcome::Fenced { seen } => conditional_rejected(key, write, None, Some(seen), "fenced"),
    }
}

/// Tells how `read` was decided: `resource_read` or `read_rejected`.
pub fn read_decided(key: &ResourceKey, read: &Read, outcome: &ReadOutcome) {
    match outcome {
        ReadOutcome::Read(snapshot) => resource_read(key, read, snapshot),
        ReadOutcome::Refused(refusal) => read_rejected(key, read, *refusal),
    }
}

fn write_accepted(key: &ResourceKey, write: &Write, digest: BodyDigest, receipt: Receipt) {
    emit!(WriteAccepted {
        key: key.id_hash(),
        owner: write.owner.as_ref().map(OwnerToken::prefix),
        token: write.token.as_u64(),
        seq: write.seq.map(WriteSeq::as_u64),
        version: receipt.version,
        body: digest.short(),
    });
}

fn write_repeated(key: &ResourceKey, write: &Write, digest: BodyDigest, receipt: Receipt) {
    emit!(WriteRepeated {
        key: key.id_hash(),
        owner: write.owner.as_ref().map(OwnerToken::prefix),
        token: write.token.as_u64(),
        seq: write.seq.map(WriteSeq::as_u64),
        version: receipt.version,
        body: digest.short(),
    });
}

fn write_rejected(key: &ResourceKey, write: &Write, refusal: Refusal) {
    emit!(WriteRejected {
        key: key.id_hash(),
        owner: write.owner.as_ref().map(OwnerToken::prefix),
        token: refusal.got.as_u64(),
        seq: write.seq.map(WriteSeq::as_u64),
        seen: refusal.seen.as_u64(),
        outcome: refusal.reason.as_str(),
    });
}

fn conditional_accepted(key: &ResourceKey, write: &ConditionalWrite, digest: BodyDigest, version: u64) {
    emit!(ConditionalAccepted {
        key: key.id_hash(),
        owner: write.owner.as_ref().map(OwnerToken::prefix),
        expected: write.expected,
        version: version,
        body: digest.short(),
    });
}

fn conditional_repeated(key: &ResourceKey, write: &ConditionalWrite, digest: BodyDigest, version: u64) {
    emit!(ConditionalRepeated {
        key: key.id_hash(),
        owner: write.owner.as_ref().map(OwnerToken::prefix),
        expected: write.expected,
        version: version,
        body: digest.short(),
    });
}

fn conditional_rejected(
    key: &ResourceKey,
    write: &ConditionalWrite,
    current: Option<u64>,
    seen: Option<FencingToken>,
    outcome: &str,
) {
    emit!(ConditionalRejected {
        key: key.id_hash(),
        owner: write.owner.as_ref().map(OwnerToken::prefix),
        expected: write.expected,
        version: current,
        seen: seen.map(FencingToken::as_u64),
        outcome: outcome,
    });
}

fn resource_read(key: &ResourceKey, read: &Read, snapshot: &Snapshot) {
    emit!(ResourceRead {
        key: key.id_hash(),
        owner: read.owner.as_ref().map(OwnerToken::prefix),
        token: read.claim.map(FencingToken::as_u64),
        version: snapshot.version,
        seen: snapshot.max_fence.map_or(0, FencingToken::as_u64),
    });
}

fn read_rejected(key: &ResourceKey, read: &Read, refusal: Refusal) {
    emit!(ReadRejected {
        key: key.id_hash(),
        owner: read.owner.as_ref().map(OwnerToken::prefix),
        token: refusal.got.as_u64(),
        seen: refusal.seen.as_u64(),
        outcome: refusal.reason.as_str(),
    });
}
