//! What a client of etcd is told when it is made.

use std::fmt;
use std::time::Duration;

use tonic::transport::Uri;

/// The longest session, in seconds: etcd grants no longer leases.
const SECONDS_MAX: u64 = 9_000_000_000;

/// How to use a cluster. Begin with [`EtcdOptions::new`] and change what must differ.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EtcdOptions {
    /// How long the session outlives its client: the TTL of its lease, in whole seconds (the rest is rounded up). No lock's TTL may
    /// be longer. Since the session is renewed every third of it, a lock whose TTL is two thirds of it has its full validity
    /// at every grant.
    pub session_ttl: Duration,
    /// The name and password to log in with, if the cluster asks for one.
    pub user: Option<(String, String)>,
}

/// Options that no client can work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdOptionsError {
    /// There is no member to talk to.
    #[error("no endpoint is given: name at least one member, as host:port")]
    NoEndpoint,
    /// An endpoint is no address.
    #[error("the endpoint `{endpoint}` is no address: write host:port, without a scheme or a path")]
    Endpoint {
        /// What was given.
        endpoint: String,
    },
    /// The session would never be or never end.
    #[error("a session of {session_ttl:?} can't be: give 1 s to {SECONDS_MAX} s, better some ten seconds")]
    SessionTtl {
        /// What was given.
        session_ttl: Duration,
    },
}

impl EtcdOptions {
    /// The usual options, with a session of `session_ttl`.
    pub fn new(session_ttl: Duration) -> Self {
        Self { session_ttl, user: None }
    }

    /// The session's TTL in seconds, at least one.
    pub(super) fn seconds(&self) -> Result<i64, EtcdOptionsError> {
        let seconds =
            self.session_ttl.as_secs().saturating_add(u64::from(self.session_ttl.subsec_nanos() > 0));
        match i64::try_from(seconds) {
            Ok(seconds @ 1..) if seconds.unsigned_abs() <= SECONDS_MAX => Ok(seconds),
            _ => Err(EtcdOptionsError::SessionTtl { session_ttl: self.session_ttl }),
        }
    }
}

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|(name, _)| name);
        f.debug_struct("EtcdOptions").field("session_ttl", &self.session_ttl).field("user", &user).finish()
    }
}

/// The endpoints, if each is an address.
pub(super) fn addresses(endpoints: &[impl AsRef<str>]) -> Result<Box<[Box<str>]>, EtcdOptionsError> {
    if endpoints.is_empty() {
        return Err(EtcdOptionsError::NoEndpoint);
    }
    let address = |endpoint: &str| {
        let uri = endpoint.parse::<Uri>().ok();
        let is_address =
            uri.is_some_and(|uri| uri.scheme().is_none() && uri.host().is_some() && uri.port_u16().is_some());
        if is_address {
            Ok(endpoint.into())
        } else {
            Err(EtcdOptionsError::Endpoint { endpoint: endpoint.into() })
        }
    };
    endpoints.iter().map(|endpoint| address(endpoint.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_whole_seconds_rounded_up() {
        let seconds = |millis| EtcdOptions::new(Duration::from_millis(millis)).seconds();
        assert_eq!(seconds(1), Ok(1));
        assert_eq!(seconds(1000), Ok(1));
        assert_eq!(seconds(1001), Ok(2));
        assert!(matches!(seconds(0), Err(EtcdOptionsError::SessionTtl { .. })));
        assert!(EtcdOptions::new(Duration::MAX).seconds().is_err());
    }

    #[test]
    fn only_addresses_are_endpoints() {
        assert_eq!(addresses(&["etcd-1:2379", "[::1]:2379"]).unwrap().len(), 2);
        assert_eq!(addresses(&[""; 0]), Err(EtcdOptionsError::NoEndpoint));
        for endpoint in ["", "etcd-1", "http://etcd-1:2379", "etcd-1:2379/", "etcd 1:2379"] {
            let error = addresses(&["etcd-1:2379", endpoint]).unwrap_err();
            assert!(error.to_string().contains("host:port"), "{endpoint}: {error}");
        }
    }

    #[test]
    fn no_password_is_printed() {
        let mut options = EtcdOptions::new(Duration::from_secs(1));
        options.user = Some(("root".into(), "secret".into()));
        assert!(!format!("{options:?}").contains("secret"));
    }
}
