//! The state of a lease that is held: shared by its handle, its watchdog and its release.

use std::mem;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dlock_runtime::{Instant, Runtime, always, closest, probes, reached, sometimes, timeout_at};
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tracing::Instrument;

use crate::backend::{Acquisition, Backend, Claim, Released, Renewal};
use crate::cleanup::{self, Tracked};
use crate::context::Context;
use crate::error::{BackendError, LostError, ReleaseError, RenewError};
use crate::event::{Event, Outcome};
use crate::hold::Hold;
use crate::lease::Terms;
use crate::open::Lease;
use crate::sync::Changes;
use crate::token::FencingToken;
use crate::validity::Validity;

/// A lease that was granted, and what is known of it.
pub(crate) struct Held<B: Backend> {
    context: Context<B>,
    claim: Claim,
    token: Option<FencingToken>,
    hold: Hold,
    acquired_at: Instant,
    validity: Validity,
    phase: AtomicU8,
    /// Counts the calls of `keep_alive`: a renewal loop ends when it is not the latest.
    loops: AtomicU64,
    /// Wakes those who wait for a new phase or loop.
    changed: Changes,
    /// Wakes the renewal loop when the validity becomes shorter.
    shortened: Changes,
    /// Locked by the renewal or release in progress, so that none overtakes another.
    tracked: Mutex<Tracked<B::Acquisition>>,
    /// The result of the first release, which later ones return. Set while `tracked` is locked.
    released: OnceLock<Result<Released, ReleaseError>>,
}

/// The life of a lease: it only moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    Held,
    /// Its validity is over.
    Expired,
    /// The server no longer knows it.
    NotOwner,
    /// The release has begun.
    Releasing,
    /// The release has ended, or the lease was left.
    Over,
}

impl<B: Backend> Held<B> {
    pub(crate) fn new(
        context: Context<B>,
        claim: Claim,
        acquisition: B::Acquisition,
        hold: Hold,
        token: Option<FencingToken>,
        acquired_at: Instant,
        valid_until: Instant,
    ) -> Self {
        let validity = Validity::new(context.options().drift, claim.ttl, valid_until);
        Self {
            context,
            claim,
            token,
            hold,
            acquired_at,
            validity,
            phase: AtomicU8::new(Phase::Held as u8),
            loops: AtomicU64::new(0),
            changed: Changes::default(),
            shortened: Changes::default(),
            tracked: Mutex::new(Tracked::new(acquisition)),
            released: OnceLock::new(),
        }
    }

    pub(crate) fn context(&self) -> &Context<B> {
        &self.context
    }

    pub(crate) fn runtime(&self) -> &B::Runtime {
        self.context.runtime()
    }

    pub(crate) fn now(&self) -> Instant {
        self.runtime().now()
    }

    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    pub(crate) fn acquired_at(&self) -> Instant {
        self.acquired_at
    }

    pub(crate) fn validity(&self) -> &Validity {
        &self.validity
    }

    pub(crate) fn valid_until(&self) -> Instant {
        self.validity.until()
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Held,
            1 => Phase::Expired,
            2 => Phase::NotOwner,
            3 => Phase::Releasing,
            _ => Phase::Over,
        }
    }

    /// Checks whether the lease may be trusted now; declares it lost if its validity is over.
    pub(crate) fn check(&self) -> Result<(), LostError> {
        match self.phase() {
            Phase::Held if self.now() < self.valid_until() => Ok(()),
            Phase::NotOwner => Err(LostError::NotOwner),
            Phase::Held => Err(self.lose(LostError::Expired)),
            Phase::Expired => Err(LostError::Expired),
            Phase::Releasing | Phase::Over => Err(LostError::Released),
        }
    }

    /// Completes once the lease may no longer be trusted; declares it lost if that has not happened yet.
    pub(crate) async fn over(&self) {
        let lost = || self.check().err();
        self.changed.until_or_at(self.runtime(), || self.valid_until(), lost).await;
    }

    /// Returns whether the validity is low, or over.
    pub(crate) fn is_low(&self) -> bool {
        self.phase() != Phase::Held || self.now() >= self.low_at()
    }

    /// Completes once the validity is low, or over.
    pub(crate) async fn low(&self) {
        let is_low = || self.is_low().then_some(());
        self.changed.until_or_at(self.runtime(), || self.low_at(), is_low).await;
    }

    fn low_at(&self) -> Instant {
        self.valid_until() - self.context.options().low_validity_of(self.validity.terms().ttl)
    }

    /// Completes when the validity next becomes shorter than it was at this call.
    pub(crate) fn shortened(&self) -> impl Future<Output = ()> + Send {
        self.shortened.next()
    }

    /// Begins another renewal loop, and ends the one before; returns its number.
    pub(crate) fn begin_loop(&self) -> u64 {
        let number = self.loops.fetch_add(1, Ordering::AcqRel) + 1;
        self.changed.announce();
        number
    }

    /// Completes when the release begins, or a later loop replaces the one numbered `number`.
    pub(crate) async fn replaced(&self, number: u64) {
        let is_replaced = || self.phase() >= Phase::Releasing || self.loops.load(Ordering::Acquire) != number;
        self.changed.until(|| is_replaced().then_some(())).await;
    }

    /// Requests the full TTL again, until `deadline` or the end of the validity; returns when to do so next.
    pub(crate) async fn renew(&self, deadline: Instant) -> Result<Instant, RenewError> {
        self.renew_with(None, deadline).await
    }

    /// Changes the terms of the lease, if others are given, and renews it as [`Held::renew`] does.
    pub(crate) async fn renew_with(
        &self,
        terms: Option<Terms>,
        deadline: Instant,
    ) -> Result<Instant, RenewError> {
        let mut tracked = self.tracked.lock().await;
        self.check()?;
        if let Some(terms) = terms {
            self.change(terms, &mut tracked.acquisition);
        }
        // Another renewal may have prolonged the validity while this one waited for it.
        let deadline = deadline.min(self.valid_until());
        let unanswered = self.validity.renewing();
        let answer = self.request_renewal(&mut tracked.acquisition, deadline).await;
        if answer.is_ok() {
            self.validity.answered(unanswered);
        }
        // A lease whose validity is over stays lost, even if the server has renewed it: the loss may have
        // been reported.
        if let Err(lost) = self.check() {
            let is_extended = matches!(answer, Ok(Renewal::Extended { .. }));
            sometimes!(self.runtime(), renewed_after_loss, is_extended);
            if self.phase() < Phase::Releasing {
                self.renewal_failed(Outcome::Expired);
            }
            return Err(RenewError::Lost(lost));
        }
        match answer {
            Ok(Renewal::Extended { since, left }) => Ok(self.extend(since, left)),
            Ok(Renewal::NotOwner) => {
                reached!(self.runtime(), renewal_found_lease_gone);
                self.renewal_failed(Outcome::NotOwner);
                Err(RenewError::Lost(self.lose(LostError::NotOwner)))
            }
            Err(error) => {
                reached!(self.runtime(), renewal_failed_lease_kept);
                self.renewal_failed(error.outcome());
                Err(RenewError::Backend(error))
            }
        }
    }

    fn change(&self, terms: Terms, acquisition: &mut B::Acquisition) {
        acquisition.set_ttl(terms.ttl);
        let now = self.now();
        let is_shorter = self.validity.change(terms, now);
        let valid = self.valid_until().saturating_since(now);
        self.emit(Event::TtlChanged { token: self.token, ttl: terms.ttl, valid });
        if is_shorter {
            self.changed.announce();
            self.shortened.announce();
        }
    }

    async fn request_renewal(
        &self,
        acquisition: &mut B::Acquisition,
        deadline: Instant,
    ) -> Result<Renewal, BackendError> {
        let request_deadline = self.now() + self.context.options().request_timeout;
        let call = acquisition.renew(request_deadline).instrument(self.hold.span());
        if deadline >= request_deadline {
            return call.await;
        }
        timeout_at(self.runtime(), deadline, call).await.unwrap_or(Err(BackendError::NoAnswer))
    }

    fn extend(&self, since: Instant, left: Duration) -> Instant {
        let spare = || self.valid_until().saturating_since(self.now());
        always!(self.runtime(), extended_before_loss, !spare().is_zero());
        closest!(self.runtime(), renewal_before_expiry_ns, spare().as_nanos() as u64);
        let until = self.validity.extend(since, left);
        let now = self.now();
        self.hold.renewed(&self.claim, now);
        let valid = until.saturating_since(now);
        self.emit(Event::Renewed { token: self.token, valid });
        self.validity.terms().renew_at(since, left)
    }

    fn renewal_failed(&self, outcome: Outcome) {
        self.hold.meter().extended(outcome);
        self.emit(Event::RenewFailed { token: self.token, outcome });
    }

    /// Declares the lease lost, once.
    fn lose(&self, why: LostError) -> LostError {
        let (phase, outcome) = match why {
            LostError::NotOwner => (Phase::NotOwner, Outcome::NotOwner),
            LostError::Expired | LostError::Capped | LostError::Released => {
                (Phase::Expired, Outcome::Expired)
            }
        };
        if self.advance(Phase::Held, phase) {
            let now = self.now();
            self.emit(Event::Lost { token: self.token, outcome });
            self.hold.lost(now, outcome);
        }
        why
    }

    /// Begins the release: no renewal starts after this, and the result of one in progress is ignored.
    pub(crate) fn begin_release(&self, now: Instant) {
        let before = self.phase.fetch_max(Phase::Releasing as u8, Ordering::AcqRel);
        if before >= Phase::Releasing as u8 {
            return;
        }
        self.changed.announce();
        self.emit(Event::ReleaseRequested { token: self.token });
        self.hold.releasing(&self.claim, self.token, now);
    }

    /// Gives the lease up on this side, without a request to the server.
    pub(crate) fn leave(&self) {
        self.phase.store(Phase::Over as u8, Ordering::Release);
        self.changed.announce();
        self.hold.left(self.now());
    }

    /// Releases the lease, first at `now`, with retries until `deadline`. After the end of another release it
    /// sends nothing.
    pub(crate) async fn release(&self, now: Instant, deadline: Instant) -> Result<Released, ReleaseError> {
        sometimes!(self.runtime(), release_waits_for_renewal, self.tracked.try_lock().is_err());
        sometimes!(self.runtime(), expired_lease_released, now >= self.valid_until());
        let mut tracked = self.tracked.lock().await;
        if let Some(released) = self.released.get() {
            return released.clone();
        }
        let release = cleanup::release(&self.context, &mut tracked, self.valid_until(), now, deadline);
        let answer = release.instrument(self.hold.span()).await;
        self.phase.store(Phase::Over as u8, Ordering::Release);
        let outcome = match &answer {
            Ok(Released::Done) => Outcome::Done,
            Ok(Released::NotOwner) => Outcome::NotOwner,
            Err(error) => error.outcome(),
        };
        sometimes!(self.runtime(), release_found_lease_gone, outcome == Outcome::NotOwner);
        sometimes!(self.runtime(), release_unconfirmed, answer.is_err());
        self.emit(Event::Released { token: self.token, outcome });
        self.hold.released(outcome);
        let needs_cleanup = match &answer {
            Ok(_) => tracked.acquisition.needs_cleanup(),
            // Others would wait for the whole TTL, and a lease that no TTL ends must be released in any case.
            Err(_) => true,
        };
        if needs_cleanup {
            self.clean_up(&mut tracked);
        }
        let session_ttl = self.context.backend().session_ttl().unwrap_or_default();
        let ends_in = self.validity.longest_ttl().max(session_ttl);
        let released = answer.map_err(|source| ReleaseError::Unconfirmed { ends_in, source });
        self.released.get_or_init(|| released).clone()
    }

    /// Starts a cleanup once the validity is over.
    pub(crate) async fn clean_up_at_expiry(&self) {
        self.runtime().sleep_until(self.valid_until()).await;
        self.clean_up(&mut *self.tracked.lock().await);
    }

    /// Moves the acquisition into a cleanup, and puts an unused one in its place.
    fn clean_up(&self, tracked: &mut Tracked<B::Acquisition>) {
        let unused = self.context.backend().open(self.claim.clone());
        let acquisition = mem::replace(&mut tracked.acquisition, unused);
        cleanup::start(&self.context, acquisition, self.validity.longest_ttl());
    }

    fn advance(&self, from: Phase, to: Phase) -> bool {
        let order = Ordering::AcqRel;
        let advanced = self.phase.compare_exchange(from as u8, to as u8, order, Ordering::Acquire).is_ok();
        if advanced {
            self.changed.announce();
        }
        advanced
    }

    fn emit(&self, event: Event) {
        self.hold.span().in_scope(|| event.emit(&self.claim.key, &self.claim.owner));
    }
}

impl<B: Backend> Lease for Held<B> {
    fn is_unreleased(&self) -> bool {
        self.phase() < Phase::Releasing
    }

    fn tell_release(&self, now: Instant) {
        self.begin_release(now);
    }

    fn release_from(self: Arc<Self>, now: Instant) -> BoxFuture<'static, bool> {
        Box::pin(async move {
            let deadline = cleanup::deadline(&self.context, now, self.validity.longest_ttl());
            self.release(self.now(), deadline).await.is_ok()
        })
    }
}

probes! {
    /// A renewal failed, and the lease is kept: validity is left.
    reached renewal_failed_lease_kept;
    /// The server renewed a lease whose loss had been declared: it stays lost.
    sometimes renewed_after_loss;
    /// A renewal was answered that the lease is gone or another owner's.
    reached renewal_found_lease_gone;
    /// A renewal takes effect only while the lease is still valid.
    always extended_before_loss;
    /// How long before the end of the validity a renewal was answered, in nanoseconds.
    closest renewal_before_expiry_ns;
    /// A release began while a renewal was in progress, and waits for it.
    sometimes release_waits_for_renewal;
    /// A lease was released after its validity had ended.
    sometimes expired_lease_released;
    /// A release was answered that the lease is gone or another owner's.
    sometimes release_found_lease_gone;
    /// A release was not confirmed in time: the lease ends by its TTL.
    sometimes release_unconfirmed;
}
