//! Leases whose tokens come from a counter that many locks share: the scripts that acquire and release one,
//! and the name of the counter.
//!
//! A fencing counter stays behind for as long as the server keeps it, so a lock for each of ten million
//! orders leaves ten million counters. Tokens need to grow for each key, and may have gaps: one counter can
//! serve any number of keys. There is one for each hash slot of Redis Cluster, since a script's keys must lie
//! on one node. Its hash tag is the smallest number whose slot is that of the lock.
//!
//! The counter goes on with the grants of other locks, so the token of a grant is stored with its owner. The
//! idea is that of etcd, whose store has one revision for all keys.

mod slot;

use std::sync::LazyLock;

use self::slot::Tag;
use super::parts::Parts;
use super::script::{Arg, Script, StoredKey};
use crate::backend::Claim;
use crate::key::{LockKey, SHARED, stored_as};
use crate::token::FencingToken;

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire_shared.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release_shared.lua")));

/// The shared counter of a lock.
pub(super) struct Counter(Tag);

impl Counter {
    /// Returns the counter of the slot of `key`.
    pub(super) fn of(key: &LockKey) -> Self {
        Self(Tag::of(key.name()))
    }

    /// Requests a lease with a token from this counter.
    pub(super) fn acquire<'a>(&'a self, claim: &'a Claim) -> Parts<'a> {
        let shared = StoredKey::named(self.0.as_str(), SHARED);
        let keys = vec![StoredKey::owner(&claim.key), StoredKey::fence(&claim.key), shared];
        Parts::of(&ACQUIRE, claim, keys).with(Arg::Millis(claim.ttl))
    }
}

/// Returns the Redis key of the counter that the lock called `name` ([`LockKey::name`]) shares with the other
/// keys of its hash slot, with [`TokenSource::Shared`](super::TokenSource::Shared). For tools.
///
/// # Example
///
/// ```
/// use dlock::redis::shared_counter;
///
/// assert_eq!(shared_counter("orders:42"), "lock:v1:{12193}:shared");
/// assert_eq!(shared_counter("orders:42"), shared_counter("orders:9487"));
/// assert_ne!(shared_counter("orders:42"), shared_counter("orders:43"));
/// ```
pub fn shared_counter(name: &str) -> String {
    stored_as(Tag::of(name).as_str(), SHARED).concat()
}

/// Releases a lease, and notifies the waiters if `is_announced`.
pub(super) fn release(claim: &Claim, is_announced: bool) -> Parts<'_> {
    let channel = Arg::Stored(StoredKey::freed(&claim.key));
    Parts::of(&RELEASE, claim, vec![StoredKey::owner(&claim.key)]).with_if(is_announced, channel)
}

/// Returns the value that the server stores for a grant.
pub(super) fn stored(claim: &Claim, token: FencingToken) -> String {
    format!("{}#{token}", claim.owner.as_str())
}

/// Splits the stored value of a lease into its owner token and the text of its fencing token; `None` if it
/// was granted with a token from another source. Owner tokens end with hexadecimal digits.
pub(super) fn split(stored: &str) -> Option<(&str, &str)> {
    let (owner, token) = stored.rsplit_once('#')?;
    let is_number = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    // The name of a process may have a `#`: then a colon follows it.
    is_number.then_some((owner, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_stored_lease_is_told_from_a_name_with_a_sharp() {
        assert_eq!(split("a:7f3c9e12#34"), Some(("a:7f3c9e12", "34")));
        assert_eq!(split("w#4:7f3c9e12#34"), Some(("w#4:7f3c9e12", "34")));
        for other in ["a:7f3c9e12", "w#4:7f3c9e12", "a:7f3c#", "7f3c9e12"] {
            assert_eq!(split(other), None, "{other}");
        }
    }
}
