//! The session of a client, shared by all its locks: opened by whoever comes first, replaced when it is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as Gate;

use super::keeper::{self, Kept};
use super::link::Link;
use super::session::Session;
use crate::error::BackendError;
use crate::runtime::{Instant, Runtime, timeout_at};

pub(super) struct Sessions<R> {
    link: Arc<Link<R>>,
    seconds: i64,
    state: Mutex<State>,
    /// Held while a session is opened: the others wait, and take what comes of it.
    gate: Gate<()>,
}

#[derive(Default)]
struct State {
    current: Option<Kept>,
    /// Counts the finished attempts to open one.
    attempts: u64,
    /// What the last one failed with.
    failure: Option<BackendError>,
}

impl<R: Runtime> Sessions<R> {
    pub(super) fn new(link: Arc<Link<R>>, seconds: i64) -> Self {
        Self { link, seconds, state: Mutex::default(), gate: Gate::new(()) }
    }

    pub(super) fn link(&self) -> &Arc<Link<R>> {
        &self.link
    }

    /// The client's session; a new one if there is none, or the last is over.
    ///
    /// # Errors
    ///
    /// Those of this caller's attempt, or of the one that it waited for.
    pub(super) async fn current(&self, patience: Instant) -> Result<Arc<Session>, BackendError> {
        let now = self.link.runtime().now();
        let attempts = {
            let state = self.state();
            if let Some(session) = state.usable(now) {
                return Ok(session);
            }
            state.attempts
        };
        let gate = timeout_at(self.link.runtime(), patience, self.gate.lock()).await;
        let _gate = gate.map_err(|_| BackendError::NoAnswer)?;
        {
            let state = self.state();
            if let Some(session) = state.usable(self.link.runtime().now()) {
                return Ok(session);
            }
            if let Some(failure) = state.failure.as_ref().filter(|_| state.attempts != attempts) {
                return Err(failure.clone());
            }
        }
        let opened = keeper::open(&self.link, self.seconds, patience).await;
        let result = opened.as_ref().map(|kept| Arc::clone(&kept.session)).map_err(Clone::clone);
        let mut state = self.state();
        state.attempts += 1;
        state.failure = result.as_ref().err().cloned();
        state.current = opened.ok();
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn usable(&self, now: Instant) -> Option<Arc<Session>> {
        let session = self.current.as_ref().map(|kept| &kept.session);
        session.filter(|session| session.check(now).is_ok()).cloned()
    }
}
