//! The options of a connection that a URL can't hold.

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use std::time::Duration;

/// The options that a URL can't hold. Begin with [`ConnectOptions::default`] and change what must differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The source of the fencing tokens of Redis and Redlock.
    #[cfg(feature = "redis")]
    pub tokens: crate::redis::TokenSource,
    /// The mechanism by which waiters of one Redis notice a release.
    #[cfg(feature = "redis")]
    pub waiting: crate::redis::Waiting,
    /// The certificates of `rediss://`, `etcds://` and `zookeepers://`. By default the roots of the system
    /// are trusted, and the client shows no certificate.
    #[cfg(feature = "tls")]
    pub tls: dlock_runtime::tls::TlsOptions,
    /// The time for which the session with etcd or ZooKeeper outlives a client that has crashed. By default
    /// 1.5 times the TTL of the lock, so that each grant has its full validity; on ZooKeeper 1.5 s more, for
    /// the limit that the module `zookeeper` describes, with ticks of 2 s.
    #[cfg(any(feature = "etcd", feature = "zookeeper"))]
    pub session_ttl: Option<Duration>,
}

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
impl ConnectOptions {
    /// Returns the TTL of the session for leases of these options, by default longer by `added` than the
    /// leases need for their full validity.
    pub(super) fn session(&self, options: &crate::options::Options, added: Duration) -> Duration {
        self.session_ttl.unwrap_or_else(|| options.ttl.saturating_add(options.ttl / 2).saturating_add(added))
    }
}

#[cfg(all(test, any(feature = "etcd", feature = "zookeeper")))]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn a_session_outlives_the_leases_unless_it_is_given() {
        let (options, added) = (Options::new(Duration::from_secs(10)), Duration::from_millis(1500));
        let mut servers = ConnectOptions::default();
        assert_eq!(servers.session(&options, Duration::ZERO), Duration::from_secs(15));
        assert_eq!(servers.session(&options, added), Duration::from_millis(16_500));
        servers.session_ttl = Some(Duration::from_secs(12));
        assert_eq!(servers.session(&options, added), Duration::from_secs(12));
        assert_eq!(ConnectOptions::default().session(&Options::new(Duration::MAX), added), Duration::MAX);
    }
}
