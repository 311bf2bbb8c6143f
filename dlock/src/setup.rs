//! Checks the servers and options of a backend before anything is sent.

use std::time::Duration;

/// Servers or options that are unusable for a backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// There is no server to connect to.
    #[error("no server is given: name at least one, as host:port")]
    NoServer,
    /// A text is not an address.
    #[error(
        "`{address}` is no address: write host:port, without a scheme or a path, or unix:/path for a socket of \
         this machine"
    )]
    Address {
        /// The address.
        address: String,
    },
    /// Redlock with so few nodes is no safer than one Redis.
    #[error(
        "Redlock on {nodes} nodes survives the failure of none: give at least 3, better 5, or use Redis with \
         one"
    )]
    TooFewNodes {
        /// The number of nodes given.
        nodes: usize,
    },
    /// A node of Redlock would vote twice.
    #[error(
        "the node {address} is named twice: its vote would count twice; name each independent server once"
    )]
    DuplicateNode {
        /// Its address.
        address: String,
    },
    /// The tokens of Redlock come from the counters of its nodes, each key its own.
    #[error("Redlock has no shared counters: take TokenSource::Counter or ServerTime, or Redis with Shared")]
    SharedCounter,
    /// A timeout of zero gives up every request.
    #[error("a node timeout of zero gives every node up: give the slowest round trip of a node, or None")]
    NodeTimeoutZero,
    /// The text is not the path of a node of ZooKeeper.
    #[error(
        "`{root}` can't be the root of the locks: give a path that begins with `/`, does not end with it, and \
         is not below /zookeeper"
    )]
    Root {
        /// The text.
        root: String,
    },
    /// The server can't keep a session of that length.
    #[error("a session of {session_ttl:?} can't be: give {min:?} to {max:?}, better some ten seconds")]
    SessionTtl {
        /// The TTL of the session.
        session_ttl: Duration,
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
}

/// The beginning of the address of a socket of this machine; its path follows.
pub(crate) const UNIX: &str = "unix:";

#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
/// Checks that `address` is written `host:port`, or `unix:/path`.
pub(crate) fn check_address(address: &str) -> Result<(), SetupError> {
    if is_address(address) { Ok(()) } else { Err(SetupError::Address { address: address.to_owned() }) }
}

/// Checks that there are servers, each written `host:port`.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(crate) fn check_addresses(addresses: &[impl AsRef<str>]) -> Result<Box<[Box<str>]>, SetupError> {
    if addresses.is_empty() {
        return Err(SetupError::NoServer);
    }
    let checked = |address: &str| check_address(address).map(|()| address.into());
    addresses.iter().map(|address| checked(address.as_ref())).collect()
}

pub(crate) fn is_address(address: &str) -> bool {
    if let Some(path) = address.strip_prefix(UNIX) {
        return path.starts_with('/') && !path.contains(char::is_control);
    }
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bracketed {
        Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && !host.contains(|c: char| c.is_whitespace() || c.is_control() || "/:@[]?#".contains(c))
        }
    };
    is_port && is_host
}

#[cfg(all(test, any(feature = "redis", feature = "etcd", feature = "zookeeper")))]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_or_a_socket_are_an_address() {
        for address in
            ["redis:6379", "127.0.0.1:1", "[::1]:2379", "redis-1.example.org:65535", "unix:/run/redis.sock"]
        {
            assert_eq!(check_address(address), Ok(()));
        }
        for address in [
            "",
            "redis",
            ":6379",
            "redis:",
            "redis:65536",
            "redis:+1",
            "redis://redis:6379",
            "redis:6379/",
            "redis 1:6379",
            "::1:6379",
            "[redis]:6379",
            "user@redis:6379",
            "unix:redis.sock",
            "unix:/a\n",
        ] {
            let error = check_address(address).unwrap_err();
            assert!(error.to_string().contains("host:port"), "{address}: {error}");
        }
    }
}
