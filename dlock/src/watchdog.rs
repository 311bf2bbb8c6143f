//! Renewal: keeps a lease alive while there is work, and stops the work when that fails.
//!
//! A watchdog shortens the time for which a holder acts on a lease that has ended. It can't prevent that,
//! since its process may pause between any two instructions. Fencing tokens prevent it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dlock_runtime::{Runtime, probes, reached, sometimes};
use futures_util::future::{Either, select};

use crate::backend::Backend;
use crate::error::{LostError, RenewError};
use crate::held::{Held, Phase};

/// The longest time for which a watchdog renews a lease, counted from the grant. It keeps a process that
/// hangs in its work from holding the lock forever: [`Handle::while_held`](crate::Handle::while_held) drops
/// the work, and [`Handle::keep_alive`](crate::Handle::keep_alive) lets the lease run out.
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
        // Checks the clock first: after a pause the work must not run on before the loss is noticed.
        held.check()?;
        if let Poll::Ready(lost) = watch.as_mut().poll(cx) {
            return Poll::Ready(Err(lost));
        }
        work.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// Runs `work` until the lease is lost, and renews nothing; see
/// [`crate::election::Leadership::lead`].
pub(crate) async fn while_valid<B: Backend, F: Future>(
    held: &Held<B>,
    work: F,
) -> Result<F::Output, LostError> {
    let mut over = pin!(held.over());
    let mut work = pin!(work);
    poll_fn(|cx| {
        // Checks the clock first, as `while_held`. Polls the end of the lease, to be woken by it.
        held.check()?;
        if over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(held.check().err().unwrap_or(LostError::Expired)));
        }
        work.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// Renews in a task of its own; see [`crate::Handle::keep_alive`].
pub(crate) fn keep_alive<B: Backend>(held: &Arc<Held<B>>, cap: Cap) {
    let number = held.begin_loop();
    let held = Arc::clone(held);
    held.runtime().clone().spawn(async move {
        let watch = pin!(async {
            watch(&held, cap).await;
            // After the cap the lease runs out.
            held.over().await;
            // One that lives as long as the client's session would be kept until the process ends.
            if held.context().backend().session_ttl().is_some() && held.phase() == Phase::Expired {
                held.clean_up_at_expiry().await;
            }
        });
        select(pin!(held.replaced(number)), watch).await;
    });
}

/// Renews until the lease is lost or the cap is reached; returns which.
pub(crate) async fn watch<B: Backend>(held: &Held<B>, cap: Cap) -> LostError {
    let runtime = held.runtime();
    let end = held.acquired_at() + cap.0;
    let first_due = || {
        let terms = held.validity().terms();
        terms.renew_at(held.valid_until() + terms.drift - terms.ttl, terms.ttl)
    };
    let mut due = first_due();
    loop {
        // Before the look at the validity, so that no change is missed.
        let shortened = held.shortened();
        let wake = runtime.sleep_until(due.min(end).min(held.valid_until()));
        if let Either::Left(_) = select(pin!(shortened), pin!(wake)).await {
            due = first_due();
            continue;
        }
        sometimes!(runtime, watchdog_overslept, runtime.now() >= held.valid_until());
        if let Err(lost) = held.check() {
            return lost;
        }
        if runtime.now() >= end {
            reached!(runtime, watchdog_capped);
            return LostError::Capped;
        }
        due = match held.renew(end).await {
            Ok(next) => next,
            Err(RenewError::Lost(lost)) => return lost,
            Err(RenewError::Backend(_) | RenewError::Ttl(_)) => {
                held.validity().terms().retry_at(runtime.now(), held.valid_until())
            }
        };
    }
}

probes! {
    /// The watchdog woke up after the validity had ended.
    sometimes watchdog_overslept;
    /// The watchdog stopped at its cap, while the lease was still valid.
    reached watchdog_capped;
}
