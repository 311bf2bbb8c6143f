//! Giving up a lease: asking until the server has confirmed it.

use crate::backend::{Backend, BackendError, Claim, Trail};
use crate::handle::Released;
use crate::lock::Lock;
use crate::runtime::{Instant, Runtime};

/// Releases `claim` in the background until no request of it can take effect any more, or until its TTL has passed since
/// now: what arrives later than that, nobody can take back but the TTL itself.
pub(crate) fn sweep<B: Backend>(lock: Lock<B>, claim: Claim, mut trail: B::Trail) {
    let runtime = lock.runtime().clone();
    let until = runtime.now() + claim.ttl;
    runtime.spawn(async move {
        // Nobody is left to tell; what was not confirmed ends by its TTL.
        let _ = settle(&lock, &claim, &mut trail, until).await;
    });
}

/// Releases until the answer is final: no request of the claim is left that could still take effect.
async fn settle<B: Backend>(
    lock: &Lock<B>,
    claim: &Claim,
    trail: &mut B::Trail,
    until: Instant,
) -> Result<(), BackendError> {
    for retry in 0.. {
        confirm(lock, claim, trail, Instant::from_nanos(0), until).await?;
        if !trail.is_open() || !pause(lock, retry, until).await {
            break;
        }
    }
    Ok(())
}

/// Releases until the server has answered.
///
/// A lease that could not have expired before `valid_until` and is gone when a release is asked for again was ended by the
/// release whose answer got lost.
///
/// # Errors
///
/// The last failure, if `until` passed or the server refuses for good.
pub(crate) async fn confirm<B: Backend>(
    lock: &Lock<B>,
    claim: &Claim,
    trail: &mut B::Trail,
    valid_until: Instant,
    until: Instant,
) -> Result<Released, BackendError> {
    let mut retry = 0;
    loop {
        let now = lock.runtime().now();
        match lock.backend().release(claim, trail, now + lock.options().request_timeout).await {
            Ok(Released::NotOwner) if retry > 0 && now < valid_until => return Ok(Released::Done),
            Ok(answer) => return Ok(answer),
            Err(error) if !error.is_passing() || !pause(lock, retry, until).await => return Err(error),
            Err(_) => retry += 1,
        }
    }
}

/// Waits before the retry numbered `retry`, at most to `until`; false if that has come already.
async fn pause<B: Backend>(lock: &Lock<B>, retry: u32, until: Instant) -> bool {
    let now = lock.runtime().now();
    if now >= until {
        return false;
    }
    lock.runtime().sleep_until((now + lock.backoff(retry)).min(until)).await;
    true
}
