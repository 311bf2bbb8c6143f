//! Cleanup: removes from the lock server what an acquisition may have left there.
//!
//! The crate has these words for the end of a claim, and no others:
//!
//! - *Release*: a request that ends the owner's lease, or removes its vote or its place in a queue
//!   ([`Acquisition::release`]). [`Handle::release`](crate::Handle::release) repeats it until the server has
//!   answered.
//! - *Abandon*: an acquire gives up its claim, since it failed, was dropped, or goes on as another owner. The
//!   claim's requests may still take effect.
//! - *Clean up*: repeat the release in the background, until none of the acquisition's requests can take
//!   effect any more. This follows an abandoned claim, a release without an answer, and a dropped handle.
//! - *Leave*: give up a lease and release nothing before its TTL is over:
//!   [`Handle::leave`](crate::Handle::leave).
//!
//! A connection or session that takes no further requests is *retired*; that ends no claim.

use std::mem;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, probes, reached, sometimes};

use crate::backend::{Acquisition, Backend, Released};
use crate::context::Context;
use crate::error::BackendError;

/// An acquisition, and whether a release was sent for it.
pub(crate) struct Tracked<A> {
    pub(crate) acquisition: A,
    is_release_sent: bool,
}

impl<A> Tracked<A> {
    pub(crate) fn new(acquisition: A) -> Self {
        Self { acquisition, is_release_sent: false }
    }
}

/// Cleans up after `acquisition` in the background, at most until its [`deadline`].
pub(crate) fn start<B: Backend>(context: &Context<B>, acquisition: B::Acquisition, ttl: Duration) {
    let until = deadline(context, context.runtime().now(), ttl);
    let shared = context.clone();
    in_background(context, async move {
        // The result is not needed: a lease without confirmation ends by its TTL.
        let _ = clean_up(&shared, &mut Tracked::new(acquisition), until).await;
    });
}

/// Runs `task` in the background; [`Lock::cleaned_up`](crate::Lock::cleaned_up) waits for it.
pub(crate) fn in_background<B: Backend>(
    context: &Context<B>,
    task: impl Future<Output = ()> + Send + 'static,
) {
    let running = context.cleanups().begin();
    context.runtime().spawn(async move {
        task.await;
        drop(running);
    });
}

/// Returns the deadline of a cleanup that begins at `now`. A request that takes effect later than the TTL
/// from now is ended by the TTL itself, where leases end by a TTL.
pub(crate) fn deadline<B: Backend>(context: &Context<B>, now: Instant, ttl: Duration) -> Instant {
    if context.backend().session_ttl().is_some() { Instant::MAX } else { now + ttl }
}

/// Releases until the server has answered. A lease that is gone before `valid_until`, when it can't have
/// expired yet, was ended by an earlier release whose answer got lost.
///
/// # Errors
///
/// The last failure, if `deadline` passed or the server refuses for good.
pub(crate) async fn release<B: Backend>(
    context: &Context<B>,
    tracked: &mut Tracked<B::Acquisition>,
    valid_until: Instant,
    mut now: Instant,
    deadline: Instant,
) -> Result<Released, BackendError> {
    let mut retry = 0;
    loop {
        let is_repeated = mem::replace(&mut tracked.is_release_sent, true);
        sometimes!(context.runtime(), release_repeated, is_repeated);
        match tracked.acquisition.release(now + context.options().request_timeout).await {
            Ok(Released::NotOwner) if is_repeated && context.runtime().now() < valid_until => {
                reached!(context.runtime(), earlier_release_took_effect);
                return Ok(Released::Done);
            }
            Ok(answer) => return Ok(answer),
            Err(error) if !error.is_passing() || !pause(context, retry, deadline).await => return Err(error),
            Err(_) => retry += 1,
        }
        now = context.runtime().now();
    }
}

/// Releases until the answer is final: none of the requests can still take effect.
async fn clean_up<B: Backend>(
    context: &Context<B>,
    tracked: &mut Tracked<B::Acquisition>,
    deadline: Instant,
) -> Result<(), BackendError> {
    for retry in 0u32.. {
        let now = context.runtime().now();
        release(context, tracked, now, now, deadline).await?;
        if !tracked.acquisition.needs_cleanup() || !pause(context, retry, deadline).await {
            break;
        }
    }
    sometimes!(context.runtime(), cleanup_gave_up, tracked.acquisition.needs_cleanup());
    Ok(())
}

/// Waits before the retry numbered `retry`, at most until `deadline`; returns false if that has passed
/// already.
async fn pause<B: Backend>(context: &Context<B>, retry: u32, deadline: Instant) -> bool {
    let now = context.runtime().now();
    if now >= deadline {
        return false;
    }
    context.runtime().sleep_until((now + context.backoff(retry)).min(deadline)).await;
    true
}

probes! {
    /// A release was sent again, since an earlier one had no answer.
    sometimes release_repeated;
    /// A repeated release found the lease gone too early to have expired: one whose answer got lost ended
    /// it.
    reached earlier_release_took_effect;
    /// A cleanup ended at its deadline although a request may still take effect.
    sometimes cleanup_gave_up;
}
