//! A session: one lease at the cluster, and its state as this client knows it.

use std::sync::MutexGuard;
use std::time::Duration;

use dlock_runtime::{Instant, Runtime};
use tokio::sync::Notify;

use crate::error::BackendError;
use crate::sync::{Changes, Guarded};

/// A session. Once it is over, it is over for good, whatever the cluster answers later: the loss may have
/// been reported.
pub(super) struct Session {
    lease: i64,
    ttl: Duration,
    state: Guarded<State>,
    /// Wakes those who wait for the answer of a keepalive, or for the end.
    changed: Changes,
    /// Wakes the keeper to send a keepalive now.
    wanted: Notify,
}

struct State {
    /// Send time of the last acknowledged keepalive, or of the request for the lease. The lease lives at
    /// least for its TTL from then on, since the cluster received the message later.
    confirmed: Instant,
    /// Send time of the keepalive in progress.
    under_way: Option<Instant>,
    /// The revision of the guard key that every put of this session must name: see `place.rs`.
    guard: i64,
    /// True if the cluster reported the end; `None` while it is not over.
    end: Option<bool>,
    /// True once the cluster has confirmed that the lease is gone: so are all its keys, and none can be
    /// created any more.
    is_gone: bool,
}

impl Session {
    /// Creates the session with the lease `lease`, which was requested at `since`.
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

    /// Returns the send time of the last acknowledged keepalive.
    pub(super) fn confirmed(&self) -> Instant {
        self.state().confirmed
    }

    /// Returns when the session ends unless it is confirmed again.
    pub(super) fn valid_until(&self) -> Instant {
        self.confirmed() + self.ttl
    }

    /// Returns the shortest time for which the session lives, counted from `at`.
    ///
    /// # Errors
    ///
    /// [`BackendError::SessionLost`] if it is over.
    pub(super) fn left(&self, at: Instant, now: Instant) -> Result<Duration, BackendError> {
        self.check(now)?;
        Ok(self.valid_until().saturating_since(at))
    }

    /// Checks whether the session may be trusted `now`; ends it if its time is over.
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

    /// Ends the session; `reported` says whether the cluster has reported that.
    pub(super) fn end(&self, reported: bool) {
        self.state().end.get_or_insert(reported);
        self.changed.announce();
    }

    /// Notes that the cluster no longer knows the lease: nothing of the session is left, and nothing can be
    /// created in it.
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

    /// Notes that the keepalive sent at `since` was answered. An answer after the end of the session is
    /// ignored.
    pub(super) fn confirm(&self, since: Instant) {
        let mut state = self.state();
        state.under_way = None;
        if state.end.is_none() {
            state.confirmed = state.confirmed.max(since);
        }
        self.changed.announce();
    }

    /// Notes that the keepalive in progress failed.
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

    /// Notes the revision of the guard key that the cluster has, after a put that named `known` or a newer
    /// one.
    ///
    /// # Errors
    ///
    /// [`BackendError::SessionLost`] if it is older than `known`. Revisions only grow, so this guard is gone:
    /// with the lease, or since the cluster was restored from a backup. Every put would be refused, so the
    /// session is over. The lease may still exist: it must be revoked.
    pub(super) fn found_guard(&self, found: i64, known: i64) -> Result<(), BackendError> {
        if found < known {
            self.end(true);
            return Err(BackendError::SessionLost { reported: true });
        }
        self.raise_guard(found);
        Ok(())
    }

    /// Requests a keepalive soon.
    pub(super) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Completes when a keepalive was requested.
    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Requests a keepalive, or joins the one in progress, and waits for its answer; returns its send time.
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

    /// Completes once the session is over; returns the error.
    pub(super) async fn over(&self, runtime: &impl Runtime) -> BackendError {
        let lost = || self.check(runtime.now()).err();
        self.changed.until_or_at(runtime, || self.valid_until(), lost).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(0);

    /// Returns a session whose guard has the revision `guard`.
    fn guarded(guard: i64) -> Session {
        let session = Session::new(1, NOW, Duration::from_secs(60));
        session.raise_guard(guard);
        session
    }

    #[test]
    fn a_guard_older_than_the_one_sent_ends_the_session() {
        let lost: Result<(), _> = Err(BackendError::SessionLost { reported: true });
        // The key is gone, or has the revision of a backup.
        for found in [0, 6] {
            let session = guarded(7);
            assert_eq!(session.found_guard(found, 7), lost);
            assert_eq!(session.check(NOW), lost);
            assert!(!session.is_gone(), "the lease may still exist");
        }
    }

    #[test]
    fn a_guard_that_others_have_moved_is_sent_next() {
        let session = guarded(7);
        assert_eq!(session.found_guard(9, 7), Ok(()));
        assert_eq!((session.guard(), session.check(NOW)), (9, Ok(())));
        // A put that was sent with 5, and refused at 7, is answered late.
        assert_eq!(session.found_guard(7, 5), Ok(()));
        assert_eq!((session.guard(), session.check(NOW)), (9, Ok(())));
    }
}
