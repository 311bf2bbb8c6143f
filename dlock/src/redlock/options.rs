//! The options of a Redlock client.

use std::fmt;
use std::time::Duration;

use crate::redis::{RedisOptions, TokenSource};
use crate::setup::{self, SetupError};

/// A node that is slower than this share of the TTL costs more validity than it is worth.
const TIMEOUT_SHARE_MAX: u32 = 4;

/// The options of [`super::Redlock`]. Begin with [`RedlockOptions::default`] and change what must differ.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedlockOptions {
    /// The timeout of one request to one node, connecting included; acquiring sends two. By default a tenth
    /// of the TTL, at least 50 ms and at most 500 ms. It is limited to a quarter of the TTL, and to
    /// [`Options::request_timeout`](crate::Options::request_timeout), the timeout of the whole call.
    pub node_timeout: Option<Duration>,
    /// The source of the fencing tokens, on all nodes alike.
    pub tokens: TokenSource,
    /// The user to log in as on each node; without one, the default user.
    pub username: Option<String>,
    /// The password on each node; without one, the client does not log in.
    pub password: Option<String>,
    /// The number of the database on each node.
    pub database: u32,
}

impl RedlockOptions {
    /// Returns the timeout of one request to one node, for a lease of `ttl`.
    pub(super) fn timeout(&self, ttl: Duration) -> Duration {
        let usual = || (ttl / 10).clamp(Duration::from_millis(50), Duration::from_millis(500));
        self.node_timeout.unwrap_or_else(usual).min(ttl / TIMEOUT_SHARE_MAX)
    }

    /// Returns the options of each node's client.
    pub(super) fn node(&self) -> RedisOptions {
        let mut options = RedisOptions::default();
        options.username.clone_from(&self.username);
        options.password.clone_from(&self.password);
        options.database = self.database;
        options
    }

    pub(super) fn check<A: AsRef<str>>(&self, addresses: &[A]) -> Result<(), SetupError> {
        addresses.iter().try_for_each(|address| setup::check_address(address.as_ref()))?;
        if addresses.len() < 3 {
            return Err(SetupError::TooFewNodes { nodes: addresses.len() });
        }
        if self.tokens == TokenSource::Shared {
            return Err(SetupError::SharedCounter);
        }
        if self.node_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(SetupError::NodeTimeoutZero);
        }
        let mut sorted: Vec<_> = addresses.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(SetupError::DuplicateNode { address: pair[0].to_owned() }),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for RedlockOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedlockOptions")
            .field("node_timeout", &self.node_timeout)
            .field("tokens", &self.tokens)
            .field("username", &self.username)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_sets_of_nodes_are_refused() {
        let check = |addresses: &[&str]| RedlockOptions::default().check(addresses);
        assert_eq!(check(&["a:1", "b:1"]), Err(SetupError::TooFewNodes { nodes: 2 }));
        let error = check(&["a:1", "b:1", "a:1"]).unwrap_err();
        assert!(error.to_string().contains("a:1 is named twice"), "{error}");
        assert_eq!(check(&["a:1", "b:1", "a:2"]), Ok(()));
        assert_eq!(check(&["a:1", "b:1", "c:1", "d:1"]), Ok(()));
        let options = RedlockOptions { node_timeout: Some(Duration::ZERO), ..RedlockOptions::default() };
        assert_eq!(options.check(&["a:1", "b:1", "c:1"]), Err(SetupError::NodeTimeoutZero));
    }

    #[test]
    fn the_node_timeout_is_a_share_of_the_ttl() {
        let ms = Duration::from_millis;
        let timeout = |node, ttl| {
            let options = RedlockOptions { node_timeout: node, ..RedlockOptions::default() };
            options.timeout(ms(ttl))
        };
        assert_eq!(timeout(None, 2000), ms(200));
        assert_eq!(timeout(None, 30_000), ms(500));
        assert_eq!(timeout(None, 100), ms(25));
        assert_eq!(timeout(Some(ms(900)), 2000), ms(500));
        assert_eq!(timeout(Some(ms(30)), 2000), ms(30));
    }
}
