//! Short functions to call a store.

use bytes::Bytes;
use dlock::FencingToken;
use futures_util::FutureExt;
use resource::fence::{Fencing, Guard, Receipt, Refusal, WriteOutcome};
use resource::store::{Read, ReadOutcome, Snapshot, Store, StoreError, Write};
use resource::{OwnerToken, ResourceKey};

pub(crate) fn key(name: &str) -> ResourceKey {
    ResourceKey::new(name).unwrap()
}

pub(crate) fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

pub(crate) fn owner(name: &str) -> Option<OwnerToken> {
    Some(OwnerToken::new(name).unwrap())
}

pub(crate) fn plain(number: u64, body: &str) -> Write {
    Write { guard: Guard::token(token(number)), owner: None, body: Bytes::copy_from_slice(body.as_bytes()) }
}

/// Returns a write on the condition that the version is `expected`.
pub(crate) fn on(expected: u64, name: Option<&str>, body: &str) -> Write {
    let owner = name.and_then(owner);
    Write { guard: Guard::Version { expected }, owner, body: Bytes::copy_from_slice(body.as_bytes()) }
}

/// Returns the receipt of a conditional write.
pub(crate) fn receipt(version: u64) -> Receipt {
    Receipt { version, max_fence: None }
}

/// Returns the outcome of a conditional write that names another version.
pub(crate) fn conflict(expected: u64, current: u64) -> WriteOutcome {
    WriteOutcome::Refused(Refusal::Conflict { expected, current })
}

/// Writes to `store`, which must complete at once: the simulator relies on it.
pub(crate) fn write(
    store: &impl Store,
    key: &ResourceKey,
    write: &Write,
    fencing: Fencing,
) -> Result<WriteOutcome, StoreError> {
    store.write(key, write, fencing).now_or_never().expect("completes at once")
}

pub(crate) fn read(
    store: &impl Store,
    key: &ResourceKey,
    read: &Read,
    fencing: Fencing,
) -> Result<ReadOutcome, StoreError> {
    store.read(key, read, fencing).now_or_never().expect("completes at once")
}

pub(crate) fn snapshot(store: &impl Store, key: &ResourceKey) -> Snapshot {
    match read(store, key, &Read::default(), Fencing::On).unwrap() {
        ReadOutcome::Read(snapshot) => snapshot,
        ReadOutcome::Refused(refusal) => panic!("an unfenced read was refused: {refusal:?}"),
    }
}

pub(crate) fn version_of(outcome: WriteOutcome) -> Option<u64> {
    match outcome {
        WriteOutcome::Accepted(receipt) => Some(receipt.version),
        WriteOutcome::Repeated(_) | WriteOutcome::Refused(_) => None,
    }
}
