//! One acquire in progress, and its end when its future is dropped.

use std::mem;
use std::pin::pin;
use std::sync::Arc;

use dlock_runtime::{Elapsed, Instant, Runtime, always, closest, probes, reached, sometimes, timeout_at};
use tracing::Instrument;

use crate::backend::{Acquisition, Answer, Backend, Claim, QueueLimit, Share};
use crate::cleanup;
use crate::context::Context;
use crate::demand::Demand;
use crate::error::BackendError;
use crate::event::{Event, Outcome};
use crate::handle::Handle;
use crate::held::Held;
use crate::hold::Hold;
use crate::key::LockKey;
use crate::lease::Terms;
use crate::metrics::Meter;
use crate::span::AcquireSpan;
use crate::token::Owner;

/// An acquire whose result is not known yet. If it is dropped before, it was cancelled, and is abandoned as
/// after a failure.
pub(crate) struct Attempt<'a, B: Backend> {
    context: &'a Context<B>,
    terms: Terms,
    claim: Claim,
    acquisition: B::Acquisition,
    meter: Arc<Meter>,
    span: AcquireSpan,
    started: Instant,
    /// The place in the queue that was announced last.
    position: Option<u64>,
    /// The outcome of the present owner's claim, if that was abandoned.
    abandoned: Option<Outcome>,
    is_over: bool,
}

impl<'a, B: Backend> Attempt<'a, B> {
    pub(crate) fn begin(
        context: &'a Context<B>,
        key: &LockKey,
        terms: Terms,
        fenced: bool,
        share: Option<Share>,
        queue: Option<QueueLimit>,
    ) -> Self {
        let claim = Claim {
            key: key.clone(),
            owner: new_owner(context),
            ttl: terms.ttl,
            fenced,
            permits: context.options().permits,
            share,
            queue,
        };
        let span = AcquireSpan::begin(context.backend().system(), &claim);
        span.span().in_scope(|| announce(Event::Requested { ttl: claim.ttl }, &claim));
        let meter = context.meters().of(key);
        meter.began();
        let started = context.runtime().now();
        let acquisition = context.backend().open(claim.clone());
        let (position, abandoned, is_over) = (None, None, false);
        Self { context, terms, claim, acquisition, meter, span, started, position, abandoned, is_over }
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Sends one request; returns `None` if `deadline` passes first. The owner stays the same from request to
    /// request, so that a grant whose answer got lost is recognised. A claim that can't be requested again is
    /// abandoned at once.
    pub(crate) async fn request(
        &mut self,
        now: Instant,
        deadline: Instant,
    ) -> Option<Result<Answer, BackendError>> {
        let answer = self.answer(now, deadline).await.ok()?.and_then(|answer| self.check_token(answer));
        match &answer {
            // The next call is `accept`.
            Ok(Answer::Granted { .. } | Answer::Unfenced { .. }) => {}
            Ok(Answer::Taken { .. } | Answer::Full { .. }) => {
                self.meter.contended();
                self.abandon_unrepeatable(Outcome::Contended);
            }
            Ok(Answer::Queued { position } | Answer::Placed { position, .. }) => self.queued(*position),
            Err(error) => self.abandon_unrepeatable(error.outcome()),
        }
        Some(answer)
    }

    /// Accepts the answer of a grant only while enough of its validity is left; otherwise abandons the claim.
    pub(crate) fn accept<T: Demand>(&mut self, grant: Answer) -> Option<Handle<B, T>> {
        let (token, since, left) = match grant {
            Answer::Granted { token, since, left } => (Some(token), since, left),
            Answer::Unfenced { since, left } => (None, since, left),
            Answer::Taken { .. } | Answer::Queued { .. } | Answer::Placed { .. } | Answer::Full { .. } => {
                return None;
            }
        };
        // `request` has refused a grant without a demanded token.
        let given = T::given(token)?;
        let valid_until = self.terms.valid_until(since, left);
        let runtime = self.context.runtime();
        let granted_at = runtime.now();
        always!(runtime, validity_within_ttl, valid_until <= since + self.claim.ttl);
        if granted_at + self.context.options().min_validity >= valid_until {
            reached!(runtime, grant_too_late);
            self.abandon_claim(Outcome::Expired);
            return None;
        }
        let valid = valid_until.saturating_since(granted_at);
        closest!(runtime, grant_validity_left_ns, valid.as_nanos() as u64);
        self.is_over = true;
        self.meter.acquired(granted_at.saturating_since(self.started));
        self.emit(Event::Acquired { token, ttl: self.claim.ttl, valid });
        let span = self.span.granted(&self.claim, token);
        let hold = Hold::begin(Arc::clone(&self.meter), span, since);
        let (context, claim, acquisition) = (self.context.clone(), self.claim.clone(), self.take());
        let beside = acquisition.beside();
        let held = Held::new(context, claim, acquisition, hold, token, since, valid_until);
        Some(Handle::new(held, given, beside))
    }

    /// Waits until the claims ahead may be gone, or until `deadline`.
    pub(crate) async fn wait_in_queue(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let runtime = self.context.runtime();
        let request_deadline = runtime.now() + self.context.options().request_timeout;
        let waiting = self.acquisition.wait(deadline).instrument(self.span.span().clone());
        match timeout_at(runtime, deadline, waiting).await {
            // A request that was sent shortly before the deadline, and not answered by then, proves nothing
            // about the server.
            Err(Elapsed) => Ok(()),
            Ok(Err(_)) if deadline < request_deadline && runtime.now() >= deadline => Ok(()),
            Ok(waited) => waited,
        }
    }

    /// Waits until `deadline`, or until the server reports that the lease may be free.
    pub(crate) async fn wait_for_release(&mut self, deadline: Instant) {
        if self.acquisition.wait(deadline).instrument(self.span.span().clone()).await.is_err() {
            self.context.runtime().sleep_until(deadline).await;
        }
    }

    /// Opens another acquisition with a new owner if the last claim was abandoned: a release that was sent
    /// for that one may arrive late, and must then not end a lease in use.
    pub(crate) fn reopen(&mut self) {
        let Some(outcome) = self.abandoned.take() else { return };
        self.emit(Event::NotAcquired { outcome });
        reached!(self.context.runtime(), owner_replaced);
        self.claim.owner = new_owner(self.context);
        self.acquisition = self.context.backend().open(self.claim.clone());
        self.position = None;
        self.span.retried(&self.claim);
        let retried = Event::Retried { ttl: self.claim.ttl };
        self.span.span().in_scope(|| announce(retried, &self.claim));
    }

    /// Abandons the acquire; returns `error`.
    pub(crate) fn fail<E>(mut self, error: E, outcome: impl FnOnce(&E) -> Outcome) -> E {
        self.abandon(outcome(&error));
        error
    }

    async fn answer(
        &mut self,
        now: Instant,
        deadline: Instant,
    ) -> Result<Result<Answer, BackendError>, Elapsed> {
        let request_deadline = now + self.context.options().request_timeout;
        let call = self.acquisition.request(request_deadline).instrument(self.span.span().clone());
        let call = pin!(call);
        if deadline >= request_deadline {
            return Ok(call.await);
        }
        timeout_at(self.context.runtime(), deadline, call).await
    }

    /// Refuses a grant without the token that the claim demands: its backend is wrong.
    fn check_token(&self, answer: Answer) -> Result<Answer, BackendError> {
        match answer {
            Answer::Unfenced { .. } if self.claim.fenced => {
                let message = "the backend gave no fencing token, which the request demands".to_owned();
                Err(BackendError::Refused { message, passing: false })
            }
            answer => Ok(answer),
        }
    }

    fn queued(&mut self, position: u64) {
        let runtime = self.context.runtime();
        sometimes!(runtime, place_lost, self.position.is_some_and(|before| before != position));
        if self.position.replace(position) != Some(position) {
            self.meter.contended();
            self.emit(Event::Queued { position });
        }
    }

    fn abandon_unrepeatable(&mut self, outcome: Outcome) {
        if !self.acquisition.is_repeatable() {
            self.abandon_claim(outcome);
        }
    }

    /// Abandons the present owner's claim. The acquire may go on: see [`Attempt::reopen`].
    fn abandon_claim(&mut self, outcome: Outcome) {
        self.abandoned = Some(outcome);
        self.clean_up();
    }

    /// Ends the acquire without a lease.
    fn abandon(&mut self, outcome: Outcome) {
        self.is_over = true;
        self.meter.not_acquired(outcome);
        self.emit(Event::NotAcquired { outcome });
        self.span.failed(outcome);
        let (runtime, needs_cleanup) = (self.context.runtime(), self.acquisition.needs_cleanup());
        let is_cancelled = outcome == Outcome::Cancelled;
        sometimes!(runtime, cancelled_maybe_held, is_cancelled && needs_cleanup);
        sometimes!(runtime, gave_up_maybe_held, !is_cancelled && needs_cleanup);
        if needs_cleanup {
            self.clean_up();
        }
    }

    fn emit(&self, event: Event) {
        self.span.span().in_scope(|| event.emit(&self.claim.key, &self.claim.owner));
    }

    fn clean_up(&mut self) {
        let acquisition = self.take();
        cleanup::start(self.context, acquisition, self.claim.ttl);
    }

    /// Takes the acquisition, and puts an unused one in its place.
    fn take(&mut self) -> B::Acquisition {
        mem::replace(&mut self.acquisition, self.context.backend().open(self.claim.clone()))
    }
}

impl<B: Backend> Drop for Attempt<'_, B> {
    fn drop(&mut self) {
        if !self.is_over {
            self.abandon(Outcome::Cancelled);
        }
    }
}

/// Emits the begin of a request, and what it says beyond a mutex's: several permits, reading, or a limit of
/// the waiters.
fn announce(begin: Event, claim: &Claim) {
    begin.emit(&claim.key, &claim.owner);
    if let permits @ 2.. = claim.permits {
        Event::Permits { permits }.emit(&claim.key, &claim.owner);
    }
    if claim.is_shared() {
        Event::Shared {}.emit(&claim.key, &claim.owner);
    }
    if let Some(QueueLimit { max: waiters_max, .. }) = claim.queue {
        Event::Bounded { waiters_max }.emit(&claim.key, &claim.owner);
    }
}

fn new_owner<B: Backend>(context: &Context<B>) -> Owner {
    Owner::random(context.runtime(), context.options().instance.as_deref())
}

probes! {
    /// An acquire failed while the server may have its key: a cleanup begins.
    sometimes gave_up_maybe_held;
    /// An acquire's future was dropped while the server may have its key.
    sometimes cancelled_maybe_held;
    /// A grant arrived with too little validity left, and was abandoned.
    reached grant_too_late;
    /// How much validity was left when a grant was accepted, in nanoseconds.
    closest grant_validity_left_ns;
    /// A lease is never trusted past the TTL, counted from before its request was sent.
    always validity_within_ttl;
    /// A waiter lost its place in the queue, and stands in another one.
    sometimes place_lost;
    /// An acquire went on with a new owner token, since its last claim was abandoned.
    reached owner_replaced;
}
