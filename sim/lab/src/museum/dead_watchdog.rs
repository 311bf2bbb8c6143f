//! B08: the watchdog is dead after a reconnect. Leases that are acquired later are never renewed, but their
//! holders believe that they are.
//!
//! Source: Redisson issue 3194.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, BackendError, Instant, Renewal, Runtime};

/// Renews until a renewal fails, and never again.
pub(super) struct DeadWatchdog;

impl LockMistake for DeadWatchdog {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        if own.client.is_set() {
            return Ok(Renewal::Extended { since: own.runtime().now(), left: own.claim.ttl });
        }
        let renewal = own.correct.renew(deadline).await;
        own.client.set(renewal.is_err());
        renewal
    }
}
