//! R06: it takes two failures in this order: a release that gets no answer and then fails again, then no
//! answer to the first renewal of the next lease. The client confuses the second failure with the first one,
//! which did no harm, and continues.
//!
//! Source: made up, as a measure of searches that need two faults in the right order.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, BackendError, Instant, Released, Renewal, Runtime};

/// Ignores the missing answer to the first renewal after a release that failed twice.
pub(super) struct TwoStep;

impl LockMistake for TwoStep {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        let renewal = own.correct.renew(deadline).await;
        match renewal {
            Err(BackendError::NoAnswer) if own.client.is_set() => {
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
        match (&released, own.noted) {
            (Err(BackendError::NoAnswer), None) => own.noted = Some(1),
            (Err(_), Some(_)) => own.client.set(true),
            _ => {}
        }
        released
    }
}
