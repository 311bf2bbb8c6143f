//! The state that a lock shares with its attempts, its handles and its cleanups.

use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::Runtime;

use crate::backend::{Backend, QueueLimit, Share};
use crate::lease::Terms;
use crate::metrics::Meters;
use crate::open::Open;
use crate::options::{Options, OptionsError};
use crate::sync::Tasks;

/// The backend, the options and the counters of one lock. Clones share them.
pub(crate) struct Context<B>(Arc<Inner<B>>);

struct Inner<B> {
    backend: B,
    options: Options,
    terms: Terms,
    meters: Meters,
    cleanups: Tasks,
    acquires: Tasks,
    open: Open,
}

impl<B: Backend> Context<B> {
    /// Checks `options` against each other and against the backend's session.
    pub(crate) fn new(backend: B, options: Options) -> Result<Self, OptionsError> {
        let terms = options.terms()?;
        check_session(&backend, terms)?;
        if options.permits > 1 && !backend.has_permits() {
            return Err(OptionsError::NoPermits { system: backend.system(), permits: options.permits });
        }
        if options.readers && !backend.has_readers() {
            return Err(OptionsError::NoReaders { system: backend.system() });
        }
        if options.waiters_max.is_some() && !backend.has_queue(options.permits) {
            return Err(OptionsError::NoQueue { system: backend.system(), permits: options.permits });
        }
        let (meters, open) = (Meters::new(backend.system()), Open::default());
        let (cleanups, acquires) = (Tasks::default(), Tasks::default());
        Ok(Self(Arc::new(Inner { backend, options, terms, meters, cleanups, acquires, open })))
    }

    pub(crate) fn backend(&self) -> &B {
        &self.0.backend
    }

    pub(crate) fn runtime(&self) -> &B::Runtime {
        self.0.backend.runtime()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(crate) fn terms(&self) -> Terms {
        self.0.terms
    }

    /// Returns the terms of a lease of `ttl`; without one, those of the options.
    pub(crate) fn terms_of(&self, ttl: Option<Duration>) -> Result<Terms, OptionsError> {
        let Some(ttl) = ttl else { return Ok(self.terms()) };
        let terms = self.options().terms_of(ttl)?;
        check_session(self.backend(), terms)?;
        Ok(terms)
    }

    pub(crate) fn meters(&self) -> &Meters {
        &self.0.meters
    }

    pub(crate) fn open(&self) -> &Open {
        &self.0.open
    }

    pub(crate) fn cleanups(&self) -> &Tasks {
        &self.0.cleanups
    }

    /// Returns the acquires in progress. Each is counted until its handle is among the leases that are held,
    /// or what it leaves behind is among the cleanups.
    pub(crate) fn acquires(&self) -> &Tasks {
        &self.0.acquires
    }

    /// Returns the share of a claim, for reading if `is_shared`; `None` if the lock has no readers.
    pub(crate) fn share(&self, is_shared: bool) -> Option<Share> {
        let Options { readers, backoff, request_timeout, .. } = self.options();
        let writer = Share::Exclusive { bars: backoff.max.saturating_add(*request_timeout) };
        readers.then_some(if is_shared { Share::Shared } else { writer })
    }

    /// Returns the limit of the waiters for a claim that waits if `waits`; `None` if the lock has none. A
    /// waiter asks again after each backoff: one that has not done so for twice as long is dead.
    pub(crate) fn queue(&self, waits: bool) -> Option<QueueLimit> {
        let Options { waiters_max, backoff, request_timeout, .. } = self.options();
        let patience = backoff.max.saturating_add(*request_timeout).saturating_mul(2);
        waiters_max.map(|max| QueueLimit { max: if waits { max } else { 0 }, patience })
    }

    /// Draws the wait before the retry numbered `retry`.
    pub(crate) fn backoff(&self, retry: u32) -> Duration {
        let mut random = [0; 8];
        self.runtime().fill_random(&mut random);
        self.options().backoff.wait(retry, random)
    }
}

/// Checks that a lease with these terms can't outlive the backend's session.
fn check_session<B: Backend>(backend: &B, terms: Terms) -> Result<(), OptionsError> {
    match backend.session_ttl() {
        Some(session) if session < terms.ttl => {
            Err(OptionsError::TtlAboveSession { ttl: terms.ttl, session })
        }
        _ => Ok(()),
    }
}

impl<B> Clone for Context<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
