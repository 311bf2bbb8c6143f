//! B09: the renewal outlives the unlock. A release that fails leaves the renewal running, so that the lock is
//! held for as long as the process lives.
//!
//! Source: Redisson issue 7272, where an unlock misses a renewal that is not scheduled yet. Here it misses
//! the renewal because its own request failed.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, BackendError, Instant, Released, Renewal, Runtime};

/// Stops its renewals only if the release succeeds.
pub(super) struct RenewalOutlives;

impl LockMistake for RenewalOutlives {
    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        let released = own.correct.release(deadline).await;
        if released.is_err() && !own.needs_cleanup() {
            keep_renewing(own);
            return Ok(Released::NotOwner);
        }
        released
    }
}

/// Renews every third of the TTL, until the server says that another owner has the lease.
fn keep_renewing(own: &Attempt) {
    let (runtime, third, mut lease) = (own.runtime().clone(), own.claim.ttl / 3, own.another());
    own.runtime().spawn(async move {
        loop {
            let due = runtime.now() + third;
            if let Ok(Renewal::NotOwner) = lease.renew(due).await {
                return;
            }
            runtime.sleep_until(due).await;
        }
    });
}
