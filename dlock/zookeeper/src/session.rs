//! The state of a session, shared by client and driver.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};
use tokio::sync::Notify;

use super::error::Error;
use super::options::ClientOptions;

/// The state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionState {
    /// No connection: the session may continue, or be over. The servers are tried one by one.
    #[default]
    Disconnected,
    /// A server has confirmed the session on this connection.
    Connected,
    /// A server has reported the end of the session. Final.
    Expired,
    /// This client has closed the session. Final.
    Closed,
}

/// A session granted by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its number: the `ephemeral_owner` of its ephemeral nodes.
    pub id: i64,
    /// The negotiated timeout.
    pub timeout: Duration,
}

pub(super) struct Shared<R> {
    pub(super) runtime: R,
    pub(super) options: ClientOptions,
    facts: Mutex<Facts>,
    /// Tells of a new state. No `watch` channel, which wakes its receivers in an order drawn at random.
    changed: Notify,
}

#[derive(Default)]
struct Facts {
    state: SessionState,
    session: Option<Session>,
    valid_until: Option<Instant>,
    /// The error of the last attempt to connect.
    failure: Option<String>,
}

impl<R: Runtime> Shared<R> {
    pub(super) fn new(runtime: R, options: ClientOptions) -> Self {
        Self { runtime, options, facts: Mutex::default(), changed: Notify::new() }
    }

    pub(super) fn state(&self) -> SessionState {
        self.facts().state
    }

    pub(super) fn set_state(&self, state: SessionState) {
        self.facts().state = state;
        self.changed.notify_waiters();
    }

    /// Waits until the state differs from `known`.
    pub(super) async fn state_after(&self, known: SessionState) -> SessionState {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registered before the check: a change right after the check is not missed.
            changed.as_mut().enable();
            let state = self.state();
            if state != known {
                return state;
            }
            changed.await;
        }
    }

    pub(super) fn session(&self) -> Option<Session> {
        self.facts().session
    }

    pub(super) fn valid_until(&self) -> Option<Instant> {
        self.facts().valid_until
    }

    /// Records a session that a server has granted or resumed.
    pub(super) fn established(&self, session: Session) {
        let mut facts = self.facts();
        facts.session = Some(session);
        facts.failure = None;
    }

    /// Records the answer to a message sent at `sent`: the server counts the timeout from then, or later.
    pub(super) fn answered(&self, sent: Instant) {
        let mut facts = self.facts();
        let Some(Session { timeout, .. }) = facts.session else { return };
        facts.valid_until = facts.valid_until.max(Some(sent + timeout));
    }

    pub(super) fn failed(&self, reason: String) {
        self.facts().failure = Some(reason);
    }

    /// Returns why a request was not sent.
    pub(super) fn not_sent(&self) -> Error {
        match self.state() {
            SessionState::Expired => Error::SessionExpired,
            SessionState::Closed => Error::Closed,
            SessionState::Connected => Error::NotSent {
                reason: "the deadline passed before the open one sent the request".to_owned(),
            },
            SessionState::Disconnected => {
                let reason = self.facts().failure.clone();
                Error::NotSent { reason: reason.unwrap_or_else(|| "none has been opened yet".to_owned()) }
            }
        }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
