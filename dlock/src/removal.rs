//! Giving up a lease: asking until the server has confirmed it.

use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::backend::{Backend, BackendError, Claim, Trail};
use crate::handle::Released;
use crate::lock::Lock;
use crate::runtime::{Instant, Runtime};

/// What was sent for a lease.
pub(crate) struct Sent<T> {
    /// The backend's memory of it.
    pub(crate) trail: T,
    /// Whether a release was.
    pub(crate) release: bool,
}

impl<T> Sent<T> {
    pub(crate) fn new(trail: T) -> Self {
        Self { trail, release: false }
    }
}

/// Until when a lease that is given up at `now` must be asked for. Its TTL ends what arrives later than that, where a TTL
/// ends anything at all.
pub(crate) fn latest<B: Backend>(now: Instant, ttl: Duration) -> Instant {
    if B::EXPIRES { now + ttl } else { Instant::MAX }
}

/// Releases `claim` in the background until no request of it can take effect any more, or until its TTL has passed since
/// now: what arrives later than that, nobody can take back but the TTL itself.
pub(crate) fn sweep<B: Backend>(lock: Lock<B>, claim: Claim, trail: B::Trail) {
    let runtime = lock.runtime().clone();
    let until = latest::<B>(runtime.now(), claim.ttl);
    let sweep = lock.sweeps().begin();
    runtime.spawn(async move {
        // Nobody is left to tell; what was not confirmed ends by its TTL.
        let _ = settle(&lock, &claim, &mut Sent::new(trail), until).await;
        drop(sweep);
    });
}

/// The releases in the background that are under way.
#[derive(Clone, Default)]
pub(crate) struct Sweeps(Arc<Count>);

#[derive(Default)]
struct Count {
    sweeps: AtomicUsize,
    none: Notify,
}

/// One of them, until it is dropped.
pub(crate) struct Sweep(Sweeps);

impl Sweeps {
    fn begin(&self) -> Sweep {
        self.0.sweeps.fetch_add(1, Ordering::AcqRel);
        Sweep(self.clone())
    }

    /// Completes once none is under way.
    pub(crate) async fn none(&self) {
        loop {
            let mut none = pin!(self.0.none.notified());
            // Heard of from here on: the last may end right after the look at the count.
            none.as_mut().enable();
            if self.0.sweeps.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        let Sweeps(count) = &self.0;
        if count.sweeps.fetch_sub(1, Ordering::AcqRel) == 1 {
            count.none.notify_waiters();
        }
    }
}

/// Releases until the answer is final: no request of the claim is left that could still take effect.
async fn settle<B: Backend>(
    lock: &Lock<B>,
    claim: &Claim,
    sent: &mut Sent<B::Trail>,
    until: Instant,
) -> Result<(), BackendError> {
    for retry in 0u32.. {
        let now = lock.runtime().now();
        confirm(lock, claim, sent, now, now, until).await?;
        if !sent.trail.is_open() || !pause(lock, retry, until).await {
            break;
        }
    }
    Ok(())
}

/// Releases until the server has answered. A lease that is gone before it can have expired, at `valid_until`, was ended
/// by an earlier release whose answer got lost.
///
/// # Errors
///
/// The last failure, if `until` passed or the server refuses for good.
pub(crate) async fn confirm<B: Backend>(
    lock: &Lock<B>,
    claim: &Claim,
    sent: &mut Sent<B::Trail>,
    valid_until: Instant,
    mut now: Instant,
    until: Instant,
) -> Result<Released, BackendError> {
    let mut retry = 0;
    loop {
        let again = mem::replace(&mut sent.release, true);
        let patience = now + lock.options().request_timeout;
        match lock.backend().release(claim, &mut sent.trail, patience).await {
            Ok(Released::NotOwner) if again && lock.runtime().now() < valid_until => {
                return Ok(Released::Done);
            }
            Ok(answer) => return Ok(answer),
            Err(error) if !error.is_passing() || !pause(lock, retry, until).await => return Err(error),
            Err(_) => retry += 1,
        }
        now = lock.runtime().now();
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
