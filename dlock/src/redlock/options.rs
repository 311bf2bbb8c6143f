//! What Redlock is told when it is made.

use std::time::Duration;

use crate::redis::{RedisConnectionInfo, TokenSource};

/// A node that is slower than this share of the TTL costs more validity than it is worth.
const TIMEOUT_SHARE_MAX: u32 = 4;

/// How [`super::Redlock`] deals with its nodes. Begin with [`RedlockOptions::default`] and change what must differ.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RedlockOptions {
    /// How long one node may take to answer one request, connecting included; acquiring asks twice. By default a tenth of
    /// the TTL, at least 50 ms and at most 500 ms. Never more than a quarter of the TTL is used, nor than
    /// [`Options::request_timeout`](crate::Options::request_timeout), which bounds the whole call.
    pub node_timeout: Option<Duration>,
    /// What tokens are counted by, on all nodes alike.
    pub tokens: TokenSource,
    /// How to log in to each node, and which database to use.
    pub login: RedisConnectionInfo,
}

/// Nodes or options that Redlock can't work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedlockError {
    /// A majority of one or two nodes is all of them: they fail more often than one alone.
    #[error(
        "Redlock on {nodes} nodes outlives the failure of none: give at least 3, better 5, or use Redis with one"
    )]
    TooFewNodes {
        /// How many were given.
        nodes: usize,
    },
    /// One node would vote twice.
    #[error(
        "the node {address} is named twice: its vote would count twice; name each independent server once"
    )]
    DuplicateNode {
        /// Its address.
        address: String,
    },
    /// Every node would be given up at once.
    #[error(
        "a node timeout of zero gives every node up: give the slowest round trip that a node may take, or None"
    )]
    NodeTimeoutZero,
}

impl RedlockOptions {
    /// How long one node may take to answer for a lease of `ttl`.
    pub(super) fn timeout(&self, ttl: Duration) -> Duration {
        let usual = || (ttl / 10).clamp(Duration::from_millis(50), Duration::from_millis(500));
        self.node_timeout.unwrap_or_else(usual).min(ttl / TIMEOUT_SHARE_MAX)
    }

    pub(super) fn check<A: AsRef<str>>(&self, addresses: &[A]) -> Result<(), RedlockError> {
        if addresses.len() < 3 {
            return Err(RedlockError::TooFewNodes { nodes: addresses.len() });
        }
        if self.node_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(RedlockError::NodeTimeoutZero);
        }
        let mut sorted: Vec<_> = addresses.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(RedlockError::DuplicateNode { address: pair[0].to_owned() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_make_no_sense_are_refused() {
        let check = |addresses: &[&str]| RedlockOptions::default().check(addresses);
        assert_eq!(check(&["a:1", "b:1"]), Err(RedlockError::TooFewNodes { nodes: 2 }));
        let error = check(&["a:1", "b:1", "a:1"]).unwrap_err();
        assert!(error.to_string().contains("a:1 is named twice"), "{error}");
        assert_eq!(check(&["a:1", "b:1", "a:2"]), Ok(()));
        assert_eq!(check(&["a:1", "b:1", "c:1", "d:1"]), Ok(()));
        let options = RedlockOptions { node_timeout: Some(Duration::ZERO), ..RedlockOptions::default() };
        assert_eq!(options.check(&["a:1", "b:1", "c:1"]), Err(RedlockError::NodeTimeoutZero));
    }

    #[test]
    fn a_node_is_waited_for_no_longer_than_a_share_of_the_ttl() {
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
