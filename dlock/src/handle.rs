//! A lease that is held.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::select;
use tokio::sync::{Mutex, Notify};

use crate::attempt::Lease;
use crate::backend::{Backend, BackendError, Claim, Renewal, Trail};
use crate::error::{LostError, ReleaseError, RenewError};
use crate::event::{Event, Outcome};
use crate::key::LockKey;
use crate::lock::Lock;
use crate::metrics::Meter;
use crate::removal::{self, Sent};
use crate::runtime::{Instant, Runtime, timeout_at};
use crate::token::{FencingToken, Owner};
use crate::watchdog::{self, Cap};

/// How many request timeouts [`Handle::release`] lasts at most, not counting the last request.
const RELEASE_TIMEOUTS: u32 = 3;

/// A lease that was granted. Dropped, it is released in the background; [`Handle::release`] tells how that went.
pub struct Handle<B: Backend> {
    held: Arc<Held<B>>,
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The lease was this owner's and has ended.
    Done,
    /// The lease had expired before, or was another's: nothing was changed. The work may have overlapped with another
    /// holder's.
    NotOwner,
}

impl<B: Backend> Handle<B> {
    pub(crate) fn new(lock: Lock<B>, claim: Claim, trail: B::Trail, meter: Arc<Meter>, lease: Lease) -> Self {
        Self { held: Arc::new(Held::new(lock, claim, trail, meter, lease)) }
    }

    /// What is locked.
    pub fn key(&self) -> &LockKey {
        &self.held.claim.key
    }

    /// The owner token of this acquisition.
    pub fn owner(&self) -> &Owner {
        &self.held.claim.owner
    }

    /// The fencing token, to be sent with every write that the lock protects.
    pub fn fence(&self) -> FencingToken {
        self.held.token
    }

    /// How long the lease may still be trusted; zero once it is lost. By the time the answer is used it is older than it
    /// says: only the fencing token makes a write safe.
    pub fn remaining(&self) -> Duration {
        if self.held.phase() != Phase::Held {
            return Duration::ZERO;
        }
        self.held.valid_until().saturating_since(self.held.now())
    }

    /// Whether the lease may still be trusted: see [`Handle::remaining`].
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// When the validity is over, on the runtime's clock, unless the lease is renewed before.
    pub fn valid_until(&self) -> Instant {
        self.held.valid_until()
    }

    /// Completes once the lease may no longer be trusted: its validity is over, a renewal found another owner, or the
    /// handle is gone.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<B> {
        let held = Arc::clone(&self.held);
        async move { held.over().await }
    }

    /// Sets the lease back to its full TTL, once. A watchdog does it by itself: [`Handle::while_held`].
    ///
    /// # Errors
    ///
    /// [`RenewError::Lost`] ends the lease for good, whatever the server says later. After [`RenewError::Backend`] it is
    /// valid for what remains, and may be tried again.
    pub async fn renew(&self) -> Result<(), RenewError> {
        self.held.renew(self.held.valid_until()).await.map(|_| ())
    }

    /// Runs `work` while the lease is held, and renews it every third of its TTL. When the lease is lost, or the cap
    /// reached, `work` is dropped where it stands: loss is declared when the validity is over and never later, before
    /// `work` gets to run again. A renewal that fails is retried while validity is left.
    ///
    /// What `work` has sent already is not called back: the resource must check the fencing token.
    ///
    /// # Errors
    ///
    /// [`LostError`] if `work` was dropped.
    pub async fn while_held<F: Future>(&self, cap: Cap, work: F) -> Result<F::Output, LostError> {
        watchdog::while_held(&self.held, cap, work).await
    }

    /// Renews the lease in a task of its own until it is lost, released or dropped, or the cap is reached; then it runs
    /// out. For work that can't be wrapped in a future: watch [`Handle::lost`] or [`Handle::is_valid`]. A second call
    /// replaces the first.
    pub fn keep_alive(&self, cap: Cap) {
        watchdog::keep_alive(&self.held, cap);
    }

    /// Ends the lease, after any renewal under way. Renewals stop at once. If the answer gets lost it asks again, for at
    /// most three request timeouts; dropped before its end, it goes on in the background.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::Unconfirmed`] if the server did not answer in time: the lease ends by its TTL then.
    pub async fn release(self) -> Result<Released, ReleaseError> {
        let held = &self.held;
        let now = held.now();
        held.stop(now);
        held.release(now, now + held.lock.options().request_timeout * RELEASE_TIMEOUTS).await
    }

    /// Gives the handle up without a word to the lock server: the lease ends by its TTL. For those who want others to wait
    /// that long, such as a job that must not run again at once. Where a lease lives as long as the session, it is released
    /// in the background when the TTL is over.
    pub fn leave(self) {
        self.held.phase.store(Phase::Ended as u8, Ordering::Release);
        self.held.changed.notify_waiters();
        if !B::EXPIRES {
            let held = Arc::clone(&self.held);
            self.held.lock.runtime().spawn(async move {
                held.lock.runtime().sleep_until(held.valid_until()).await;
                let trail = mem::take(&mut held.sent.lock().await.trail);
                removal::sweep(held.lock.clone(), held.claim.clone(), trail);
            });
        }
    }
}

impl<B: Backend> Drop for Handle<B> {
    fn drop(&mut self) {
        if self.held.phase() == Phase::Ended {
            return;
        }
        let held = Arc::clone(&self.held);
        let now = held.now();
        held.stop(now);
        // The answer is in the events and metrics.
        self.held.lock.runtime().spawn(async move {
            let _ = held.release(held.now(), removal::latest::<B>(now, held.claim.ttl)).await;
        });
    }
}

impl<B: Backend> fmt::Debug for Handle<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("key", self.key())
            .field("owner", &self.owner().prefix())
            .field("fence", &self.fence())
            .field("remaining", &self.remaining())
            .finish()
    }
}

/// What a handle shares with its watchdog and its release.
pub(crate) struct Held<B: Backend> {
    pub(crate) lock: Lock<B>,
    pub(crate) claim: Claim,
    token: FencingToken,
    meter: Arc<Meter>,
    acquired_at: Instant,
    /// In nanoseconds on the runtime's clock. It only grows.
    valid_until: AtomicU64,
    phase: AtomicU8,
    /// Counts the calls of keep_alive: a loop ends when it is not the latest.
    pub(crate) loops: AtomicU64,
    /// Wakes whoever waits for a new phase or loop.
    pub(crate) changed: Notify,
    /// What was sent; held by the renewal or release under way, so that none overtakes another.
    sent: Mutex<Sent<B::Trail>>,
}

/// The life of a lease, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    Held,
    /// It may no longer be trusted.
    Expired,
    /// The server no longer knows it.
    NotOwner,
    /// The release has begun.
    Stopped,
    /// The release has ended.
    Ended,
}

impl<B: Backend> Held<B> {
    fn new(lock: Lock<B>, claim: Claim, trail: B::Trail, meter: Arc<Meter>, lease: Lease) -> Self {
        Self {
            acquired_at: lease.since,
            lock,
            claim,
            token: lease.token,
            meter,
            valid_until: AtomicU64::new(lease.valid_until.as_nanos()),
            phase: AtomicU8::new(Phase::Held as u8),
            loops: AtomicU64::new(0),
            changed: Notify::new(),
            sent: Mutex::new(Sent::new(trail)),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.lock.runtime().now()
    }

    pub(crate) fn acquired_at(&self) -> Instant {
        self.acquired_at
    }

    pub(crate) fn valid_until(&self) -> Instant {
        Instant::from_nanos(self.valid_until.load(Ordering::Acquire))
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Held,
            1 => Phase::Expired,
            2 => Phase::NotOwner,
            3 => Phase::Stopped,
            _ => Phase::Ended,
        }
    }

    /// Whether the lease may be trusted now; if its validity is over, it is declared lost.
    pub(crate) fn check(&self) -> Result<(), LostError> {
        match self.phase() {
            Phase::Held if self.now() < self.valid_until() => Ok(()),
            Phase::NotOwner => Err(LostError::NotOwner),
            Phase::Held => Err(self.lose(LostError::Expired)),
            Phase::Expired | Phase::Stopped | Phase::Ended => Err(LostError::Expired),
        }
    }

    /// Completes once the lease may no longer be trusted, and declares it lost if nobody has.
    pub(crate) async fn over(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.check().is_err() {
                return;
            }
            let expiry = pin!(self.lock.runtime().sleep_until(self.valid_until()));
            select(changed, expiry).await;
        }
    }

    /// Asks for the full TTL again, no longer than `bound` or the end of the validity; answers when to do so next.
    pub(crate) async fn renew(&self, bound: Instant) -> Result<Instant, RenewError> {
        let mut sent = self.sent.lock().await;
        self.check()?;
        let answer = self.ask_renewal(&mut sent.trail, bound.min(self.valid_until())).await;
        // A lease whose validity is over stays lost, even if the server has renewed it: others may have been told.
        if let Err(lost) = self.check() {
            if self.phase() < Phase::Stopped {
                self.renewal_failed(Outcome::Expired);
            }
            return Err(RenewError::Lost(lost));
        }
        match answer {
            Ok(Renewal::Extended { since, left }) => Ok(self.extend(since, left)),
            Ok(Renewal::NotOwner) => {
                self.renewal_failed(Outcome::NotOwner);
                Err(RenewError::Lost(self.lose(LostError::NotOwner)))
            }
            Err(error) => {
                self.renewal_failed(error.outcome());
                Err(RenewError::Backend(error))
            }
        }
    }

    async fn ask_renewal(&self, trail: &mut B::Trail, bound: Instant) -> Result<Renewal, BackendError> {
        let patience = self.now() + self.lock.options().request_timeout;
        let call = self.lock.backend().renew(&self.claim, trail, patience);
        if bound >= patience {
            return call.await;
        }
        timeout_at(self.lock.runtime(), bound, call).await.unwrap_or(Err(BackendError::NoAnswer))
    }

    fn extend(&self, since: Instant, left: Duration) -> Instant {
        let terms = self.lock.terms();
        let until = terms.valid_until(since, left);
        self.valid_until.fetch_max(until.as_nanos(), Ordering::AcqRel);
        self.meter.extended(Outcome::Done);
        let valid = until.saturating_since(self.now());
        self.emit(Event::Renewed { token: self.token, valid });
        terms.renew_at(since, left)
    }

    fn renewal_failed(&self, outcome: Outcome) {
        self.meter.extended(outcome);
        self.emit(Event::RenewFailed { token: self.token, outcome });
    }

    /// Declares the lease lost, once.
    fn lose(&self, why: LostError) -> LostError {
        let (phase, outcome) = match why {
            LostError::NotOwner => (Phase::NotOwner, Outcome::NotOwner),
            LostError::Expired | LostError::Capped => (Phase::Expired, Outcome::Expired),
        };
        if self.advance(Phase::Held, phase) {
            self.meter.lost();
            self.meter.held(self.now().saturating_since(self.acquired_at));
            self.emit(Event::Lost { token: self.token, outcome });
        }
        why
    }

    /// Begins the release: no renewal starts from here on, and the one under way is dropped.
    fn stop(&self, now: Instant) {
        let before = self.phase.fetch_max(Phase::Stopped as u8, Ordering::AcqRel);
        if before >= Phase::Stopped as u8 {
            return;
        }
        if before == Phase::Held as u8 {
            self.meter.held(now.saturating_since(self.acquired_at));
        }
        self.changed.notify_waiters();
        self.emit(Event::ReleaseRequested { token: self.token });
    }

    async fn release(&self, now: Instant, until: Instant) -> Result<Released, ReleaseError> {
        let mut sent = self.sent.lock().await;
        let answer =
            removal::confirm(&self.lock, &self.claim, &mut sent, self.valid_until(), now, until).await;
        self.phase.store(Phase::Ended as u8, Ordering::Release);
        let outcome = match &answer {
            Ok(Released::Done) => Outcome::Done,
            Ok(Released::NotOwner) => Outcome::NotOwner,
            Err(error) => error.outcome(),
        };
        self.meter.released(outcome);
        self.emit(Event::Released { token: self.token, outcome });
        // What no TTL ends must be released in any case, however long that takes.
        if answer.as_ref().map_or(!B::EXPIRES, |_| sent.trail.is_open()) {
            removal::sweep(self.lock.clone(), self.claim.clone(), mem::take(&mut sent.trail));
        }
        answer.map_err(|source| ReleaseError::Unconfirmed { ends_in: self.claim.ttl, source })
    }

    fn advance(&self, from: Phase, to: Phase) -> bool {
        let order = Ordering::AcqRel;
        let advanced = self.phase.compare_exchange(from as u8, to as u8, order, Ordering::Acquire).is_ok();
        if advanced {
            self.changed.notify_waiters();
        }
        advanced
    }

    fn emit(&self, event: Event) {
        event.emit(&self.claim.key, &self.claim.owner);
    }
}
