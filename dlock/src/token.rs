//! The two tokens of a grant: the fencing token orders the holders, the owner token identifies one.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;

use dlock_runtime::Runtime;

use crate::key::hex_digits;

/// A number that grows from grant to grant of a key. Send it with every protected write. Never zero.
///
/// The order lasts as long as the lock server's data. On etcd and ZooKeeper the token is a revision of the
/// cluster: it grows as long as a majority keeps its data. On Redis and Redlock it is a counter: it grows
/// only while the servers keep the writes that they have acknowledged. A crash without fsync, an eviction, or
/// a failover to a replica that lags may set the counter back, and then a later grant has a token that an
/// earlier one had, or a lower one. `TokenSource::ServerTime` keeps the order then, as long as the servers'
/// clocks do not step back.
///
/// Source: Kleppmann, "How to do distributed locking" (2016).
///
/// # Example
///
/// ```
/// use dlock::FencingToken;
///
/// // The resource reads the token from a request, and compares it with the highest that it has seen.
/// let seen: FencingToken = "34".parse()?;
/// let got: FencingToken = "33".parse()?;
/// assert!(got < seen, "the write is stale");
/// assert_eq!(FencingToken::new(0), None);
/// # Ok::<(), dlock::TokenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(NonZeroU64);

/// A text that is no fencing token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no fencing token: give a whole number from 1 to {}", u64::MAX)]
pub struct TokenError {
    text: String,
}

impl FencingToken {
    /// Returns the token of that number, or `None` for zero.
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Returns the number.
    pub const fn as_u64(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for FencingToken {
    type Err = TokenError;

    /// Reads decimal digits and nothing else: no sign, no space.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        number.and_then(Self::new).ok_or_else(|| TokenError { text: text.chars().take(40).collect() })
    }
}

/// Identifies one acquisition: 128 random bits, after the name of the process if it has one
/// (`worker-4:7f3c…`).
///
/// It proves identity, not order: a release and a renewal change a lock only if its stored owner is this one.
/// A clone costs no allocation.
///
/// # Example
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example.rs")); }
/// # example::run(async |_, runtime, _| {
/// use dlock::Owner;
///
/// let owner = Owner::random(&runtime, Some("worker-4"));
/// // Only the prefix may be logged.
/// assert_eq!(owner.prefix().len(), "worker-4:".len() + 8);
/// assert_eq!(dlock::owner_prefix(owner.as_str()), owner.prefix());
/// # Ok(()) });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(Arc<str>);

impl Owner {
    /// Draws a new owner token. `instance` names the process in logs.
    pub fn random<R: Runtime>(runtime: &R, instance: Option<&str>) -> Self {
        let mut bytes = [0; 16];
        runtime.fill_random(&mut bytes);
        let mut digits = [0; 32];
        let digits = hex_digits(&bytes, &mut digits);
        Self(match instance {
            Some(name) if !name.is_empty() => [name, ":", digits].concat().into(),
            _ => digits.into(),
        })
    }

    /// Returns the owner token with this text.
    #[cfg(test)]
    #[cfg(feature = "redis")]
    pub(crate) fn of(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the whole token. It suffices to release the lock: log [`Owner::prefix`] instead.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part that may be logged: the name of the process, if any, and the first 8 of 32
    /// hexadecimal digits.
    pub fn prefix(&self) -> &str {
        owner_prefix(&self.0)
    }
}

/// Returns the part of an owner token that may be logged: see [`Owner::prefix`]. Works on any text.
pub fn owner_prefix(owner: &str) -> &str {
    let digits = owner.bytes().rposition(|byte| byte == b':').map_or(0, |colon| colon + 1);
    let end = digits + 8;
    if owner.as_bytes().get(digits..end).is_some_and(<[u8]>::is_ascii) {
        return &owner[..end];
    }
    // No token of ours.
    let end = owner[digits..].char_indices().nth(8).map_or(owner.len(), |(at, _)| digits + at);
    &owner[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_reads_as_it_was_written(number in 1..=u64::MAX) {
            let token = FencingToken::new(number).unwrap();
            prop_assert_eq!(token.to_string().parse(), Ok(token));
        }

        #[test]
        fn a_prefix_shows_at_most_eight_digits_of_the_secret(name in "\\PC{0,12}", bytes: [u8; 16]) {
            let text = [&name, ":", hex_digits(&bytes, &mut [0; 32])].concat();
            let shown = owner_prefix(&text);
            prop_assert!(text.starts_with(shown));
            prop_assert_eq!(shown.len(), name.len() + 1 + 8);
        }
    }

    #[test]
    fn a_text_that_is_no_token_is_refused() {
        for text in ["", "0", "-1", "+1", " 1", "1 ", "1.0", "0x1", "18446744073709551616"] {
            let error = text.parse::<FencingToken>().unwrap_err();
            assert!(error.to_string().contains("from 1 to"), "{error}");
        }
    }

    #[test]
    fn an_owner_is_its_processs_name_and_128_bits() {
        let owner = |text: &str| Owner(text.into());
        assert_eq!(owner("a:7f3c9e12ffffffffffffffffffffffff").prefix(), "a:7f3c9e12");
        assert_eq!(owner("7f3c9e12ffffffffffffffffffffffff").prefix(), "7f3c9e12");
        assert_eq!(owner("köln:7f3c9e12ffffffffffffffffffffffff").prefix(), "köln:7f3c9e12");
        assert_eq!(owner("short").prefix(), "short");
    }
}
