//! A mutex or a semaphore on one Redis whose waiters the server keeps in a queue with a limit: the scripts
//! that acquire and release. The lease is stored, renewed and read as that of any mutex or permit.
//!
//! The waiters of a key are a sorted set, ordered by their places. A second one has the time at which each
//! must have asked again. Every script removes those that have not, so that a waiter which died holds the
//! others up for a while only, and so that nothing is left of a queue in which nobody waits.
//!
//! A waiter is served when it asks, if the lock is free and nobody is before it; of a semaphore, if fewer are
//! before it than permits are free. So a release must wake the first one, wherever it is: the message on the
//! channel of releases is its place. One that gets a permit wakes the next one while more are free.
//!
//! The queue of waiters with a time limit for each is that of Redisson's `RedissonFairLock`, which has no
//! limit of their number.

use std::sync::LazyLock;

use super::options::TokenSource;
use super::parts::Parts;
use super::script::{Arg, Script, StoredKey};
use crate::backend::{Claim, QueueLimit};

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire_in_turn.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release_in_turn.lua")));
static ACQUIRE_PERMIT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("acquire_permit_in_turn.lua")));
static RELEASE_PERMIT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("release_permit_in_turn.lua")));

/// Requests the lease, or a place in the queue. A script that removes dead waiters wakes the first one if
/// `is_announced`.
pub(super) fn acquire(
    claim: &Claim,
    limit: QueueLimit,
    tokens: TokenSource,
    is_announced: bool,
) -> Parts<'_> {
    let key = &claim.key;
    let mut keys = keys(claim);
    keys.push(StoredKey::fence(key));
    let channel = if is_announced { Arg::Stored(StoredKey::freed(key)) } else { Arg::Text("") };
    let script = if claim.permits > 1 { &ACQUIRE_PERMIT } else { &ACQUIRE };
    let parts = Parts::of(script, claim, keys).with(Arg::Millis(claim.ttl));
    let parts = parts.with_if(claim.permits > 1, Arg::Number(claim.permits.into()));
    let parts = parts.with(Arg::Number(limit.max.into())).with(Arg::Millis(limit.patience)).with(channel);
    parts.with_if(tokens == TokenSource::ServerTime, Arg::Text("time"))
}

/// Releases the lease and leaves the queue, and wakes the first waiter if `is_announced`.
pub(super) fn release(claim: &Claim, is_announced: bool) -> Parts<'_> {
    let channel = Arg::Stored(StoredKey::freed(&claim.key));
    let script = if claim.permits > 1 { &RELEASE_PERMIT } else { &RELEASE };
    let parts = Parts::of(script, claim, keys(claim));
    parts.with_if(claim.permits > 1, Arg::Number(claim.permits.into())).with_if(is_announced, channel)
}

fn keys(claim: &Claim) -> Vec<StoredKey<'_>> {
    let key = &claim.key;
    let queue = [StoredKey::waiters(key), StoredKey::patience(key)];
    match claim.permits {
        1 => [vec![StoredKey::owner(key)], queue.into()].concat(),
        _ => [vec![StoredKey::permits(key), StoredKey::tokens(key)], queue.into()].concat(),
    }
}
