//! A lease at the cluster and its validity by this client's clock.

use std::pin::pin;
use std::time::Duration;

use dlock::{BackendError, Instant, Runtime};
use futures_util::future::select;
use sim::world::runtime::SimRuntime;
use tokio::sync::oneshot;

use super::watched::Watched;

/// A lease at the cluster, kept alive by a task until this is dropped.
pub(super) struct Session {
    pub(super) lease: i64,
    pub(super) ttl: Duration,
    pub(super) state: Watched<State>,
    pub(super) _close: oneshot::Sender<()>,
}

/// Validity of a session.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// End of the lease: its TTL after the last acknowledged keepalive was sent.
    pub(super) valid_until: Instant,
    /// True once the cluster has ended the lease.
    pub(super) is_gone: bool,
}

impl Session {
    /// Returns the end of the lease.
    pub(super) fn valid_until(&self) -> Instant {
        self.state.get().valid_until
    }

    /// Notes that the cluster has ended the lease, so that the session is over.
    pub(super) fn end(&self) {
        self.state.change(|state| state.is_gone = true);
    }

    /// Returns an error if the session is over.
    pub(super) fn check(&self, runtime: &SimRuntime) -> Result<(), BackendError> {
        let State { valid_until, is_gone } = self.state.get();
        if is_gone || runtime.now() >= valid_until {
            return Err(BackendError::SessionLost { reported: is_gone });
        }
        Ok(())
    }

    /// Waits until the session is over; returns the reason.
    pub(super) async fn over(&self, runtime: &SimRuntime) -> BackendError {
        loop {
            if let Err(lost) = self.check(runtime) {
                return lost;
            }
            let known = self.state.get().valid_until;
            let moved = self.state.until(|state| state.is_gone || state.valid_until != known);
            select(pin!(moved), pin!(runtime.sleep_until(known))).await;
        }
    }
}
