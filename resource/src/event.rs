//! The events with the target `resource`, in the vocabulary that logs, traces and the audit share.
//!
//! A store emits them at the moment of decision, while no other decision about the key is possible. So the
//! events of a key are in the order of its decisions, also on a server with many threads.

use dlock::FencingToken;
use history::emit;

use crate::BodyDigest;
use crate::OwnerToken;
use crate::ResourceKey;
use crate::fence::{Guard, Refusal, WriteOutcome, WriteSeq};
use crate::operation::{Read, ReadOutcome, Snapshot, Write};

/// Emits the decision about `write`: `write_accepted`, `write_repeated` or `write_rejected`; of a conditional
/// write `conditional_accepted`, `conditional_repeated` or `conditional_rejected`.
pub fn write_decided(key: &ResourceKey, write: &Write, digest: BodyDigest, outcome: &WriteOutcome) {
    match write.guard {
        Guard::Token { token, seq } => fenced_decided(key, write, token, seq, digest, outcome),
        Guard::Version { expected } => conditional_decided(key, write, expected, digest, outcome),
    }
}

/// Emits the decision about `read`: `resource_read` or `read_rejected`.
pub fn read_decided(key: &ResourceKey, read: &Read, outcome: &ReadOutcome) {
    match outcome {
        ReadOutcome::Read(snapshot) => resource_read(key, read, snapshot),
        ReadOutcome::Refused(refusal) => read_rejected(key, read, *refusal),
    }
}

/// Emits an operator's change of the highest token seen.
pub fn fence_set(key: &ResourceKey, from: Option<FencingToken>, to: Option<FencingToken>) {
    emit!(FenceSet {
        key: key.id_hash(),
        token: to.map_or(0, FencingToken::as_u64),
        seen: from.map_or(0, FencingToken::as_u64),
    });
}

fn fenced_decided(
    key: &ResourceKey,
    write: &Write,
    token: FencingToken,
    seq: Option<WriteSeq>,
    digest: BodyDigest,
    outcome: &WriteOutcome,
) {
    let (token, seq) = (token.as_u64(), seq.map(WriteSeq::as_u64));
    match outcome {
        WriteOutcome::Accepted(receipt) => emit!(WriteAccepted {
            key: key.id_hash(),
            owner: write.owner.as_ref().map(OwnerToken::prefix),
            token: token,
            seq: seq,
            version: receipt.version,
            body: digest.short(),
        }),
        WriteOutcome::Repeated(receipt) => emit!(WriteRepeated {
            key: key.id_hash(),
            owner: write.owner.as_ref().map(OwnerToken::prefix),
            token: token,
            seq: seq,
            version: receipt.version,
            body: digest.short(),
        }),
        WriteOutcome::Refused(refusal) => emit!(WriteRejected {
            key: key.id_hash(),
            owner: write.owner.as_ref().map(OwnerToken::prefix),
            token: token,
            seq: seq,
            seen: refusal.seen().map_or(0, FencingToken::as_u64),
            outcome: refusal.as_str(),
        }),
    }
}

fn conditional_decided(
    key: &ResourceKey,
    write: &Write,
    expected: u64,
    digest: BodyDigest,
    outcome: &WriteOutcome,
) {
    match *outcome {
        WriteOutcome::Accepted(receipt) => emit!(ConditionalAccepted {
            key: key.id_hash(),
            owner: write.owner.as_ref().map(OwnerToken::prefix),
            expected: expected,
            version: receipt.version,
            body: digest.short(),
        }),
        WriteOutcome::Repeated(receipt) => emit!(ConditionalRepeated {
            key: key.id_hash(),
            owner: write.owner.as_ref().map(OwnerToken::prefix),
            expected: expected,
            version: receipt.version,
            body: digest.short(),
        }),
        WriteOutcome::Refused(refusal) => emit!(ConditionalRejected {
            key: key.id_hash(),
            owner: write.owner.as_ref().map(OwnerToken::prefix),
            expected: expected,
            version: if let Refusal::Conflict { current, .. } = refusal { Some(current) } else { None },
            seen: refusal.seen().map(FencingToken::as_u64),
            outcome: refusal.as_str(),
        }),
    }
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
        token: read.claim.map_or(0, FencingToken::as_u64),
        seen: refusal.seen().map_or(0, FencingToken::as_u64),
        outcome: refusal.as_str(),
    });
}
