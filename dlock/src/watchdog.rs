//! Renewal: a lease is kept alive while there is work, and the work is stopped when that fails.
//!
//! A watchdog narrows the window in which a holder acts on a lease that has ended; it can't close it, since the process
//! that it runs in may pause between any two instructions. Fencing tokens close it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::select;

use crate::backend::Backend;
use crate::error::{LostError, RenewError};
use crate::handle::{Held, Phase};
use crate::runtime::Runtime;

/// The longest time for which a watchdog keeps a lease, counted from the grant. It stops a process that hangs in its work
/// from holding the lock for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap(pub Duration);

/// Runs `work` beside the renewals; see [`crate::Handle::while_held`].
pub(crate) async fn while_held<B: Backend, F: Future>(
    held: &Held<B>,
    cap: Cap,
    work: F,
) -> Result<F::Output, LostError> {
    let mut watch = pin!(watch(held, cap));
    let mut work = pin!(work);
    poll_fn(|cx| {
        // The clock before everything: after a pause the work must not run on before the loss is noticed.
        held.check()?;
        if let Poll::Ready(lost) = watch.as_mut().poll(cx) {
            return Poll::Ready(Err(lost));
        }
        work.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// Renews in a task of its own; see [`crate::Handle::keep_alive`].
pub(crate) fn keep_alive<B: Backend>(held: &Arc<Held<B>>, cap: Cap) {
    let number = held.loops.fetch_add(1, Ordering::AcqRel) + 1;
    held.changed.notify_waiters();
    let held = Arc::clone(held);
    held.lock.runtime().clone().spawn(async move {
        let watch = pin!(async {
            watch(&held, cap).await;
            // Capped, the lease runs out.
            held.over().await;
        });
        select(pin!(replaced(&held, number)), watch).await;
    });
}

/// Renews until the lease is lost or the cap reached, and says which.
async fn watch<B: Backend>(held: &Held<B>, cap: Cap) -> LostError {
    let runtime = held.lock.runtime();
    let terms = held.lock.terms();
    let end = held.acquired_at() + cap.0;
    let mut due = terms.renew_at(held.valid_until() + terms.drift - terms.ttl, terms.ttl);
    loop {
        runtime.sleep_until(due.min(end).min(held.valid_until())).await;
        if let Err(lost) = held.check() {
            return lost;
        }
        if runtime.now() >= end {
            return LostError::Capped;
        }
        due = match held.renew(end).await {
            Ok(next) => next,
            Err(RenewError::Lost(lost)) => return lost,
            Err(RenewError::Backend(_)) => terms.retry_at(runtime.now(), held.valid_until()),
        };
    }
}

/// Completes when the release begins or a later loop takes over from the one numbered `number`.
async fn replaced<B: Backend>(held: &Held<B>, number: u64) {
    loop {
        let mut changed = pin!(held.changed.notified());
        changed.as_mut().enable();
        if held.phase() >= Phase::Stopped || held.loops.load(Ordering::Acquire) != number {
            return;
        }
        changed.await;
    }
}
