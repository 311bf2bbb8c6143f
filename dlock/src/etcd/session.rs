//! A session: one lease at the cluster, and what this client knows of it.

use std::sync::MutexGuard;
use std::time::Duration;

use tokio::sync::Notify;

use crate::error::BackendError;
use crate::runtime::{Instant, Runtime};
use crate::sync::{Changes, Guarded};

/// A session. Once it is over, it is over for good, whatever the cluster answers later: others may have been told.
pub(super) struct Session {
    lease: i64,
    ttl: Duration,
    state: Guarded<State>,
    /// Wakes whoever waits for a keepalive's answer, or for the end.
    changed: Changes,
    /// Wakes the keeper: somebody wants a keepalive now.
    wanted: Notify,
}

struct State {
    /// When the last keepalive was sent that was answered, or the lease was asked for. The lease lives for its TTL from then
    /// on, at least: the cluster heard of it later.
    confirmed: Instant,
    /// When the keepalive was sent that is under way.
    under_way: Option<Instant>,
    /// The revision of the guard key below which no request of this session may put anything: see `place.rs`.
    guard: i64,
    /// Whether the cluster reported the end, once it is over.
    end: Option<bool>,
    /// Whether the cluster has confirmed that the lease is gone, and so all its keys, and that none can come.
    is_gone: bool,
}

impl Session {
    /// The session with the lease `lease`, which was asked for at `since`.
    pub(super) fn new(lease: i64, since: Instant, ttl: Duration) -> Self {
        let state = State { confirmed: since, under_way: None, guard: 0, end: None, is_gone: false };
        Self { lease, ttl, state: Guarded::new(state), changed: Changes::default(), wanted: Notify::new() }
    }

    pub(super) fn lease(&self) -> i64 {
        self.lease
    }

    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// When a keepalive was last sent that was answered.
    pub(super) fn confirmed(&self) -> Instant {
        self.state().confirmed
    }

    /// When it is over unless it is confirmed again.
    pub(super) fn valid_until(&self) -> Instant {
        self.confirmed() + self.ttl
    }

    /// How long it lives from `at` on, at least, as far as is known `now`.
    ///
    /// # Errors
    ///
    /// [`BackendError::SessionLost`] if it is over.
    pub(super) fn left(&self, at: Instant, now: Instant) -> Result<Duration, BackendError> {
        self.check(now)?;
        Ok(self.valid_until().saturating_since(at))
    }

    /// Whether it may be relied on `now`. If its time is over, it ends here.
    ///
    /// # Errors
    ///
    /// [`BackendError::SessionLost`] if it is over.
    pub(super) fn check(&self, now: Instant) -> Result<(), BackendError> {
        let mut state = self.state();
        if state.end.is_none() && now >= state.confirmed + self.ttl {
            state.end = Some(false);
            self.changed.announce();
        }
        state.end.map_or(Ok(()), |reported| Err(BackendError::SessionLost { reported }))
    }

    /// Ends it; `reported` says whether the cluster did.
    pub(super) fn end(&self, reported: bool) {
        self.state().end.get_or_insert(reported);
        self.changed.announce();
    }

    /// Notes that the cluster knows the lease no more: nothing of the session is left, and nothing can come.
    pub(super) fn gone(&self) {
        self.state().is_gone = true;
        self.end(true);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.state().is_gone
    }

    /// Notes that a keepalive is sent at `now`.
    pub(super) fn asking(&self, now: Instant) {
        self.state().under_way = Some(now);
    }

    /// Notes that the keepalive that was sent at `since` was answered; too late is too late.
    pub(super) fn confirm(&self, since: Instant) {
        let mut state = self.state();
        state.under_way = None;
        if state.end.is_none() {
            state.confirmed = state.confirmed.max(since);
        }
        self.changed.announce();
    }

    /// Notes that the keepalive under way came to nothing.
    pub(super) fn failed(&self) {
        self.state().under_way = None;
    }

    pub(super) fn guard(&self) -> i64 {
        self.state().guard
    }

    /// Notes a newer revision of the guard key.
    pub(super) fn raise_guard(&self, revision: i64) {
        let mut state = self.state();
        state.guard = state.guard.max(revision);
    }

    /// Has a keepalive sent soon.
    pub(super) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Completes when somebody has asked for a keepalive.
    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Has a keepalive sent, or joins the one under way, and waits until it was answered; says when it was sent.
    ///
    /// # Errors
    ///
    /// [`BackendError::SessionLost`] if the session ends.
    pub(super) async fn renewed(&self, runtime: &impl Runtime) -> Result<Instant, BackendError> {
        let now = runtime.now();
        self.check(now)?;
        let under_way = self.state().under_way;
        let least = under_way.unwrap_or(now);
        if under_way.is_none() {
            self.want();
        }
        let check = || {
            let checked = self.check(runtime.now()).map(|()| self.confirmed());
            match checked {
                Ok(confirmed) if confirmed < least => None,
                answered_or_lost => Some(answered_or_lost),
            }
        };
        self.changed.until_or_at(runtime, || self.valid_until(), check).await
    }

    /// Completes once it is over, and returns why.
    pub(super) async fn over(&self, runtime: &impl Runtime) -> BackendError {
        let lost = || self.check(runtime.now()).err();
        self.changed.until_or_at(runtime, || self.valid_until(), lost).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
