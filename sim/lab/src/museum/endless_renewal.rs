//! R12: the watchdog renews for as long as its process lives, although the holder is gone and has not
//! released. No waiter is ever served.
//!
//! Source: Redisson's watchdog, which knows the client, but not if the thread that held the lock still runs.

use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, BackendError, Instant, Renewal, Runtime};

/// Renews by a task of its own, from the first renewal on.
pub(super) struct EndlessRenewal;

impl LockMistake for EndlessRenewal {
    async fn renew(own: &mut Attempt, deadline: Instant) -> Result<Renewal, BackendError> {
        if own.noted.is_none() {
            own.noted = Some(1);
            keep_renewing(own);
        }
        own.correct.renew(deadline).await
    }
}

/// Renews every third of the TTL, until the server says that another owner has the lease.
fn keep_renewing(own: &Attempt) {
    let (runtime, third, mut lease) = (own.runtime().clone(), own.claim.ttl / 3, own.another());
    own.runtime().spawn(async move {
        loop {
            let due = runtime.now() + third;
            runtime.sleep_until(due).await;
            if let Ok(Renewal::NotOwner) = lease.renew(due + third).await {
                return;
            }
        }
    });
}
