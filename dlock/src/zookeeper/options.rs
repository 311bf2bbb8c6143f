//! The options of a ZooKeeper client.

use std::time::Duration;

use crate::setup::SetupError;

/// The options of a ZooKeeper client. Begin with [`ZooKeeperOptions::new`] and change what must differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZooKeeperOptions {
    /// The session timeout: the time for which a crashed holder blocks others. No lock's TTL may be longer.
    /// The servers may grant another timeout, within their own limits (`minSessionTimeout`,
    /// `maxSessionTimeout`: 2 and 20 of their ticks); leases are then trusted for no longer than that.
    pub session_timeout: Duration,
}

impl ZooKeeperOptions {
    /// Returns the usual options, with a session of `session_timeout`.
    pub fn new(session_timeout: Duration) -> Self {
        Self { session_timeout }
    }

    /// Checks that the protocol can express the timeout: in milliseconds, as a number of 32 bits.
    pub(super) fn check(&self) -> Result<(), SetupError> {
        let (min, max) = (Duration::from_millis(1), Duration::from_millis(i32::MAX.unsigned_abs().into()));
        if (min..=max).contains(&self.session_timeout) {
            return Ok(());
        }
        Err(SetupError::SessionTtl { session_ttl: self.session_timeout, min, max })
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
}
