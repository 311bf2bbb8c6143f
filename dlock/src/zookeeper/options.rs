//! The options of a ZooKeeper client.

use std::fmt;
use std::time::Duration;

use dlock_zookeeper::path;

use crate::setup::SetupError;

/// The options of a ZooKeeper client. Begin with [`ZooKeeperOptions::new`] and change what must differ.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZooKeeperOptions {
    /// The session timeout: the time for which a crashed holder blocks others. No lock's TTL may be longer.
    /// The servers may grant another timeout, within their own limits (`minSessionTimeout`,
    /// `maxSessionTimeout`: 2 and 20 of their ticks); leases are then trusted for no longer than that.
    pub session_timeout: Duration,
    /// The user and the password to log in with (scheme `digest`). With it, the nodes of the locks are open
    /// to that user alone: all clients of the same locks must log in as the same. Without it, everybody may
    /// use and delete them.
    pub login: Option<(String, String)>,
    /// The node below which all nodes of the locks are, such as `/prod`; by default `/`. The client creates
    /// it if it may. All clients of the same locks must agree on it.
    pub root: String,
}

impl ZooKeeperOptions {
    /// Returns the usual options, with a session of `session_timeout`.
    pub fn new(session_timeout: Duration) -> Self {
        Self { session_timeout, login: None, root: "/".to_owned() }
    }

    /// Returns the path of the parent of the queues.
    pub(super) fn parent(&self) -> String {
        format!("{}{}", self.root.trim_end_matches('/'), path::ROOT)
    }

    /// Checks that the root is a path, and that the protocol can express the timeout: in milliseconds, as a
    /// number of 32 bits.
    pub(super) fn check(&self) -> Result<(), SetupError> {
        let root = self.root.strip_prefix('/');
        let is_name =
            |name: &str| !matches!(name, "" | "." | ".." | "zookeeper") && !name.contains(char::is_control);
        if !root.is_some_and(|root| root.is_empty() || root.split('/').all(is_name)) {
            return Err(SetupError::Root { root: self.root.clone() });
        }
        let (min, max) = (Duration::from_millis(1), Duration::from_millis(i32::MAX.unsigned_abs().into()));
        if (min..=max).contains(&self.session_timeout) {
            return Ok(());
        }
        Err(SetupError::SessionTtl { session_ttl: self.session_timeout, min, max })
    }
}

impl fmt::Debug for ZooKeeperOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZooKeeperOptions")
            .field("session_timeout", &self.session_timeout)
            .field("user", &self.login.as_ref().map(|(user, _)| user))
            .field("root", &self.root)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_fits_into_the_protocol() {
        let check = |timeout| ZooKeeperOptions::new(timeout).check();
        assert_eq!(check(Duration::from_secs(30)), Ok(()));
        for timeout in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
            assert!(matches!(check(timeout), Err(SetupError::SessionTtl { .. })), "{timeout:?}");
        }
    }

    #[test]
    fn a_root_is_a_path() {
        let rooted = |root: &str| {
            let mut options = ZooKeeperOptions::new(Duration::from_secs(30));
            options.root = root.to_owned();
            options
        };
        for (root, parent) in [("/", "/locks"), ("/prod", "/prod/locks"), ("/prod/eu", "/prod/eu/locks")] {
            assert_eq!(rooted(root).check(), Ok(()));
            assert_eq!(rooted(root).parent(), parent);
        }
        for root in ["", "prod", "//", "/prod/", "/a//b", "/a/../b", "/zookeeper", "/a\n"] {
            let error = rooted(root).check().unwrap_err();
            assert!(error.to_string().contains("begins with `/`"), "{root}: {error}");
        }
    }

    #[test]
    fn no_password_is_printed() {
        let mut options = ZooKeeperOptions::new(Duration::from_secs(1));
        options.login = Some(("app".into(), "secret".into()));
        assert!(!format!("{options:?}").contains("secret"));
    }
}
