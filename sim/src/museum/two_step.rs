//! R06: it takes two failures, in this order: a release that fails, then the first renewal of a later lease.
//! The client takes the second failure for the first one's, which did no harm, and goes on.
//!
//! Source: made up, as a measure of searches that have to get two things right in order.

use dlock::{Acquisition, BackendError, Instant, Released, Renewal, Runtime};

use super::lock::{Attempt, Mistake};

/// Ignores the failures of a lease whose first renewal fails after a failed release.
pub(super) struct TwoStep;

impl Mistake for TwoStep {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let renewal = own.correct.renew(deadline).await;
        match renewal {
            Err(_) if own.client.is_set() => {
                Ok(Renewal::Extended { since: own.runtime().now(), left: own.claim.ttl })
            }
            renewal => {
                own.client.set(false);
                renewal
            }
        }
    }

    async fn release(own: &mut Attempt, deadline: Instant) -> Result<Released, BackendError> {
        let released = own.correct.release(deadline).await;
        // The library goes on with a release that failed: that one may succeed and be forgotten.
        if released.is_err() {
            own.client.set(true);
        }
        released
    }
}
