//! The options of an etcd client.

use std::fmt;
use std::time::Duration;

use crate::setup::SetupError;

/// The longest session, in seconds: etcd grants no longer leases.
const SECONDS_MAX: u64 = 9_000_000_000;

/// The options of an etcd client. Begin with [`EtcdOptions::new`] and change what must differ.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EtcdOptions {
    /// The time for which the session outlives its client: the TTL of its lease, in whole seconds (rounded
    /// up). No lock's TTL may be longer. Since the session is renewed every third of its TTL, a lock whose
    /// TTL is two thirds of that has its full validity at every grant.
    pub session_ttl: Duration,
    /// The name and password to log in with, if the cluster asks for one.
    pub user: Option<(String, String)>,
}

impl EtcdOptions {
    /// Returns the usual options, with a session of `session_ttl`.
    pub fn new(session_ttl: Duration) -> Self {
        Self { session_ttl, user: None }
    }

    /// Returns the session's TTL in seconds, at least one.
    pub(super) fn seconds(&self) -> Result<i64, SetupError> {
        let seconds =
            self.session_ttl.as_secs().saturating_add(u64::from(self.session_ttl.subsec_nanos() > 0));
        match i64::try_from(seconds) {
            Ok(seconds @ 1..) if seconds.unsigned_abs() <= SECONDS_MAX => Ok(seconds),
            _ => Err(self.refused()),
        }
    }

    fn refused(&self) -> SetupError {
        let (min, max) = (Duration::from_secs(1), Duration::from_secs(SECONDS_MAX));
        SetupError::SessionTtl { session_ttl: self.session_ttl, min, max }
    }
}

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|(name, _)| name);
        f.debug_struct("EtcdOptions").field("session_ttl", &self.session_ttl).field("user", &user).finish()
    }
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
        assert!(matches!(seconds(0), Err(SetupError::SessionTtl { .. })));
        assert!(EtcdOptions::new(Duration::MAX).seconds().is_err());
    }

    #[test]
    fn no_password_is_printed() {
        let mut options = EtcdOptions::new(Duration::from_secs(1));
        options.user = Some(("root".into(), "secret".into()));
        assert!(!format!("{options:?}").contains("secret"));
    }
}
