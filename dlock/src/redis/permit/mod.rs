//! Permits of a semaphore on one Redis: the scripts that acquire, renew and release one.
//!
//! The owners of a key's permits are a sorted set, ordered by the end of their leases on the server's clock.
//! Each script removes those that are over, or ignores them, so a permit that nobody releases is free once
//! its TTL has passed. The tokens are a hash beside it. Both keys expire with the last lease.
//!
//! The sorted set of owners is that of Carlson, "Redis in Action", section 6.3 (2013), which orders by the
//! clocks of clients: there a client whose clock is ahead removes the permits of others. Here the script
//! reads the server's clock, and each permit has a fencing token.

use std::sync::LazyLock;

use super::options::TokenSource;
use super::parts::Parts;
use super::script::{Arg, Script, StoredKey};
use crate::backend::Claim;

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire_permit.lua")));
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("renew_permit.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release_permit.lua")));

/// Requests a permit.
pub(super) fn acquire(claim: &Claim, tokens: TokenSource) -> Parts<'_> {
    let key = &claim.key;
    let keys = vec![StoredKey::permits(key), StoredKey::tokens(key), StoredKey::fence(key)];
    let parts = Parts::of(&ACQUIRE, claim, keys).with(Arg::Millis(claim.ttl));
    let parts = parts.with(Arg::Number(claim.permits.into()));
    parts.with_if(tokens == TokenSource::ServerTime, Arg::Text("time"))
}

/// Renews a permit.
pub(super) fn renew(claim: &Claim) -> Parts<'_> {
    Parts::of(&RENEW, claim, keys(claim)).with(Arg::Millis(claim.ttl))
}

/// Releases a permit, and notifies the waiters if `is_announced`.
pub(super) fn release(claim: &Claim, is_announced: bool) -> Parts<'_> {
    let channel = Arg::Stored(StoredKey::freed(&claim.key));
    Parts::of(&RELEASE, claim, keys(claim)).with_if(is_announced, channel)
}

fn keys(claim: &Claim) -> Vec<StoredKey<'_>> {
    vec![StoredKey::permits(&claim.key), StoredKey::tokens(&claim.key)]
}
