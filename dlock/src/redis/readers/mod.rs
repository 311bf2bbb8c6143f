//! Locks for readers and a writer on one Redis: the scripts that acquire, renew and release.
//!
//! The readers of a key are a sorted set, ordered by the end of their leases on the server's clock, with
//! their tokens in a hash beside it, as the permits of a semaphore are. The writer's lease is stored as that
//! of a mutex. A writer that finds readers bars new ones: it is in a second sorted set, for a little longer
//! than until its next request. So readers that keep coming can't starve it, and one that dies while it waits
//! bars nobody for long. All tokens come from the counter of the mutex.
//!
//! Readers and writers as such: Courtois, Heymans, Parnas, "Concurrent control with readers and writers"
//! (CACM 14(10), 1971), whose second problem bars readers while a writer waits.

use std::sync::LazyLock;
use std::time::Duration;

use super::options::TokenSource;
use super::parts::Parts;
use super::script::{Arg, Script, StoredKey};
use crate::backend::{Claim, Share};

static ACQUIRE_READER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire_reader.lua")));
static RENEW_READER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("renew_reader.lua")));
static RELEASE_READER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release_reader.lua")));
static ACQUIRE_WRITER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire_writer.lua")));
static RELEASE_WRITER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release_writer.lua")));

/// Requests a lease for reading.
pub(super) fn acquire_shared(claim: &Claim, tokens: TokenSource) -> Parts<'_> {
    let parts = Parts::of(&ACQUIRE_READER, claim, all_keys(claim)).with(Arg::Millis(claim.ttl));
    parts.with_if(tokens == TokenSource::ServerTime, Arg::Text("time"))
}

/// Requests a lease for writing, which bars readers for `bars` if it has to wait for some.
pub(super) fn acquire_alone(claim: &Claim, bars: Duration, tokens: TokenSource) -> Parts<'_> {
    let parts = Parts::of(&ACQUIRE_WRITER, claim, all_keys(claim)).with(Arg::Millis(claim.ttl));
    let parts = parts.with(Arg::Millis(bars));
    parts.with_if(tokens == TokenSource::ServerTime, Arg::Text("time"))
}

/// Renews a lease for reading.
pub(super) fn renew(claim: &Claim) -> Parts<'_> {
    Parts::of(&RENEW_READER, claim, readers(claim)).with(Arg::Millis(claim.ttl))
}

/// Releases, and notifies the waiters if `is_announced`. A writer that waited bars nobody afterwards.
pub(super) fn release(claim: &Claim, share: Share, is_announced: bool) -> Parts<'_> {
    let parts = match share {
        Share::Shared => Parts::of(&RELEASE_READER, claim, readers(claim)),
        Share::Exclusive { .. } => {
            let keys = vec![StoredKey::owner(&claim.key), StoredKey::writers(&claim.key)];
            Parts::of(&RELEASE_WRITER, claim, keys)
        }
    };
    parts.with_if(is_announced, Arg::Stored(StoredKey::freed(&claim.key)))
}

fn readers(claim: &Claim) -> Vec<StoredKey<'_>> {
    vec![StoredKey::readers(&claim.key), StoredKey::reads(&claim.key)]
}

fn all_keys(claim: &Claim) -> Vec<StoredKey<'_>> {
    let key = &claim.key;
    let (owner, fence) = (StoredKey::owner(key), StoredKey::fence(key));
    vec![owner, StoredKey::readers(key), StoredKey::reads(key), StoredKey::writers(key), fence]
}
