//! Giving up a lease: releasing it until the server has confirmed.

use std::mem;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, probes, reached, sometimes};

use crate::backend::{Acquisition, Backend, Released};
use crate::context::Context;
use crate::error::BackendError;

/// An acquisition, and whether a release was sent for it.
pub(crate) struct Sent<A> {
    pub(crate) acquisition: A,
    release: bool,
}

impl<A> Sent<A> {
    pub(crate) fn new(acquisition: A) -> Self {
        Self { acquisition, release: false }
    }
}

/// Returns the deadline for releasing a lease of `ttl` that is given up at `now`. A request that takes effect
/// later than the TTL from now is ended by the TTL itself, where leases end by a TTL.
pub(crate) fn deadline<B: Backend>(context: &Context<B>, now: Instant, ttl: Duration) -> Instant {
    if context.backend().session_ttl().is_some() { Instant::MAX } else { now + ttl }
}

/// Releases `acquisition` in the background until none of its requests can take effect any more, or until its
/// [`deadline`].
pub(crate) fn sweep<B: Backend>(context: &Context<B>, acquisition: B::Acquisition, ttl: Duration) {
    let runtime = context.runtime();
    let until = deadline(context, runtime.now(), ttl);
    let sweep = context.sweeps().begin();
    let context = context.clone();
    runtime.clone().spawn(async move {
        // The result is not needed: a lease without confirmation ends by its TTL.
        let _ = settle(&context, &mut Sent::new(acquisition), until).await;
        drop(sweep);
    });
}

/// Releases until the answer is final: none of the requests can still take effect.
async fn settle<B: Backend>(
    context: &Context<B>,
    sent: &mut Sent<B::Acquisition>,
    deadline: Instant,
) -> Result<(), BackendError> {
    for retry in 0u32.. {
        let now = context.runtime().now();
        confirm(context, sent, now, now, deadline).await?;
        if !sent.acquisition.may_be_held() || !pause(context, retry, deadline).await {
            break;
        }
    }
    sometimes!(context.runtime(), cleanup_gave_up, sent.acquisition.may_be_held());
    Ok(())
}

/// Releases until the server has answered. A lease that is gone before `valid_until`, when it can't have
/// expired yet, was ended by an earlier release whose answer got lost.
///
/// # Errors
///
/// The last failure, if `deadline` passed or the server refuses for good.
pub(crate) async fn confirm<B: Backend>(
    context: &Context<B>,
    sent: &mut Sent<B::Acquisition>,
    valid_until: Instant,
    mut now: Instant,
    deadline: Instant,
) -> Result<Released, BackendError> {
    let mut retry = 0;
    loop {
        let is_repeated = mem::replace(&mut sent.release, true);
        sometimes!(context.runtime(), release_repeated, is_repeated);
        match sent.acquisition.release(now + context.options().request_timeout).await {
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
    /// A release in the background ended although a request may still take effect.
    sometimes cleanup_gave_up;
}
