//! A backend over TLS, on the runtime without it.

use std::time::Duration;

use dlock_runtime::tls::Tls;
use dlock_runtime::{Instant, Runtime};

use crate::backend::{Backend, Claim, Holder};
use crate::error::{BackendError, SILENT};
use crate::key::LockKey;

/// A backend whose runtime is `Tls<R>`, as a backend on `R`: clock and scheduler are the same.
#[derive(Clone)]
pub(crate) struct Secured<B>(pub(crate) B);

impl<R: Runtime, B: Backend<Runtime = Tls<R>>> Backend for Secured<B> {
    type Runtime = R;
    type Acquisition = B::Acquisition;

    fn runtime(&self) -> &R {
        self.0.runtime().inner()
    }

    fn system(&self) -> &'static str {
        self.0.system()
    }

    fn session_ttl(&self) -> Option<Duration> {
        self.0.session_ttl()
    }

    fn has_permits(&self) -> bool {
        self.0.has_permits()
    }

    fn has_readers(&self) -> bool {
        self.0.has_readers()
    }

    fn has_queue(&self, permits: u32) -> bool {
        self.0.has_queue(permits)
    }

    async fn connect(&self, deadline: Instant) -> Result<(), BackendError> {
        self.0.connect(deadline).await.map_err(|error| match error {
            BackendError::Unreachable { address, reason } if reason == SILENT => {
                let reason = format!("{reason}; a port without TLS may stay silent");
                BackendError::Unreachable { address, reason }
            }
            error => error,
        })
    }

    async fn holder(&self, key: &LockKey, deadline: Instant) -> Result<Option<Holder>, BackendError> {
        self.0.holder(key, deadline).await
    }

    fn open(&self, claim: Claim) -> B::Acquisition {
        self.0.open(claim)
    }
}
