//! One acquire in progress, and its cleanup when its future is dropped.

use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dlock_runtime::{Elapsed, Instant, Runtime, always, closest, probes, reached, sometimes, timeout_at};

use crate::backend::{Acquisition, Answer, Backend, Claim};
use crate::context::Context;
use crate::error::BackendError;
use crate::event::{Event, Outcome};
use crate::handle::Handle;
use crate::held::Lease;
use crate::key::LockKey;
use crate::metrics::Meter;
use crate::removal;
use crate::token::{FencingToken, Owner};

/// An acquire whose end is not known yet. If it is dropped before its end, it was cancelled; whatever the
/// server may have granted is then released in the background, as after a failure.
pub(crate) struct Attempt<'a, B: Backend> {
    context: &'a Context<B>,
    claim: Claim,
    acquisition: B::Acquisition,
    meter: Arc<Meter>,
    started: Instant,
    /// The place in the queue that was announced last.
    position: Option<u64>,
    /// The outcome of the present owner's claim, if it was released early.
    given_back: Option<Outcome>,
    ended: bool,
}

/// The result of one request.
pub(crate) enum Step {
    Granted(Lease),
    Denied(Obstacle),
    /// The deadline of the acquire passed during the request.
    DeadlinePassed,
}

/// Why a request gave no lease.
pub(crate) enum Obstacle {
    Held {
        left: Option<Duration>,
    },
    /// In the queue: the next request is worthwhile after [`Attempt::wait_in_queue`].
    Queued,
    /// Granted, with too little validity left; it is being released.
    Late,
    Failed(BackendError),
}

impl<'a, B: Backend> Attempt<'a, B> {
    pub(crate) fn begin(context: &'a Context<B>, key: &LockKey) -> Self {
        let claim = Claim { key: key.clone(), owner: new_owner(context), ttl: context.terms().ttl };
        Event::Requested { ttl: claim.ttl }.emit(&claim.key, &claim.owner);
        let meter = context.meters().of(key);
        let started = context.runtime().now();
        let acquisition = context.backend().open(claim.clone());
        Self { context, claim, acquisition, meter, started, position: None, given_back: None, ended: false }
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Sends one request. The owner stays the same from request to request, so that a grant whose answer got
    /// lost is recognised. An acquisition that can't be repeated is released at once.
    pub(crate) async fn request(&mut self, now: Instant, deadline: Instant) -> Step {
        let Ok(answer) = self.answer(now, deadline).await else { return Step::DeadlinePassed };
        let obstacle = match answer {
            Ok(Answer::Granted { token, since, left }) => return self.judge(token, since, left),
            Ok(Answer::Held { left }) => {
                self.meter.contended();
                Obstacle::Held { left }
            }
            Ok(Answer::Queued { position }) => {
                self.queued(position);
                return Step::Denied(Obstacle::Queued);
            }
            Err(error) => Obstacle::Failed(error),
        };
        if !self.acquisition.is_repeatable() {
            self.give_back(match &obstacle {
                Obstacle::Failed(error) => error.outcome(),
                _ => Outcome::Contended,
            });
        }
        Step::Denied(obstacle)
    }

    /// Waits until the claims ahead may be gone, or until `deadline`.
    pub(crate) async fn wait_in_queue(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let runtime = self.context.runtime();
        let request_deadline = runtime.now() + self.context.options().request_timeout;
        match timeout_at(runtime, deadline, self.acquisition.wait(deadline)).await {
            // A request that was sent shortly before the deadline, and not answered by then, proves nothing
            // about the server.
            Err(Elapsed) => Ok(()),
            Ok(Err(_)) if deadline < request_deadline && runtime.now() >= deadline => Ok(()),
            Ok(waited) => waited,
        }
    }

    /// Waits until `deadline`, or until the server reports that the lease may be free.
    pub(crate) async fn wait_for_release(&mut self, deadline: Instant) {
        if self.acquisition.wait(deadline).await.is_err() {
            self.context.runtime().sleep_until(deadline).await;
        }
    }

    /// Moves the acquisition into a handle.
    pub(crate) fn succeed(mut self, lease: Lease) -> Handle<B> {
        self.ended = true;
        self.meter.acquired(lease.granted_at.saturating_since(self.started));
        let valid = lease.valid_until.saturating_since(lease.granted_at);
        let event = Event::Acquired { token: lease.token, ttl: self.claim.ttl, valid };
        event.emit(&self.claim.key, &self.claim.owner);
        let acquisition = self.take();
        Handle::new(self.context.clone(), self.claim.clone(), acquisition, Arc::clone(&self.meter), lease)
    }

    /// Ends with `error`; releases any lease that may have been granted.
    pub(crate) fn fail<E>(mut self, error: E, outcome: impl FnOnce(&E) -> Outcome) -> E {
        self.end(outcome(&error));
        error
    }

    /// Opens another acquisition with a new owner if the last one was released: the release that was sent for
    /// that one may arrive late, and must then not end a lease in use.
    pub(crate) fn reopen(&mut self) {
        let Some(outcome) = self.given_back.take() else { return };
        Event::NotAcquired { outcome }.emit(&self.claim.key, &self.claim.owner);
        reached!(self.context.runtime(), owner_replaced);
        self.claim.owner = new_owner(self.context);
        self.acquisition = self.context.backend().open(self.claim.clone());
        self.position = None;
        Event::Retried { ttl: self.claim.ttl }.emit(&self.claim.key, &self.claim.owner);
    }

    async fn answer(
        &mut self,
        now: Instant,
        deadline: Instant,
    ) -> Result<Result<Answer, BackendError>, Elapsed> {
        let request_deadline = now + self.context.options().request_timeout;
        let call = pin!(self.acquisition.request(request_deadline));
        if deadline >= request_deadline {
            return Ok(call.await);
        }
        timeout_at(self.context.runtime(), deadline, call).await
    }

    /// Accepts a grant only while enough of its validity is left; releases a later one at once.
    fn judge(&mut self, token: FencingToken, since: Instant, left: Duration) -> Step {
        let valid_until = self.context.terms().valid_until(since, left);
        let runtime = self.context.runtime();
        let granted_at = runtime.now();
        always!(runtime, validity_within_ttl, valid_until <= since + self.claim.ttl);
        if granted_at + self.context.options().min_validity < valid_until {
            let left = valid_until.saturating_since(granted_at);
            closest!(runtime, grant_validity_left_ns, left.as_nanos() as u64);
            return Step::Granted(Lease { token, since, granted_at, valid_until });
        }
        reached!(runtime, grant_too_late);
        self.give_back(Outcome::Expired);
        Step::Denied(Obstacle::Late)
    }

    fn queued(&mut self, position: u64) {
        let runtime = self.context.runtime();
        sometimes!(runtime, place_lost, self.position.is_some_and(|before| before != position));
        if self.position.replace(position) != Some(position) {
            self.meter.contended();
            Event::Queued { position }.emit(&self.claim.key, &self.claim.owner);
        }
    }

    fn give_back(&mut self, outcome: Outcome) {
        self.given_back = Some(outcome);
        self.sweep();
    }

    fn end(&mut self, outcome: Outcome) {
        self.ended = true;
        self.meter.not_acquired(outcome);
        Event::NotAcquired { outcome }.emit(&self.claim.key, &self.claim.owner);
        let (runtime, is_cancelled) = (self.context.runtime(), outcome == Outcome::Cancelled);
        sometimes!(runtime, cancelled_maybe_held, is_cancelled && self.acquisition.may_be_held());
        sometimes!(runtime, gave_up_maybe_held, !is_cancelled && self.acquisition.may_be_held());
        if self.acquisition.may_be_held() {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let acquisition = self.take();
        removal::sweep(self.context, acquisition, self.claim.ttl);
    }

    /// Takes the acquisition, and leaves one in its place for which nothing was sent.
    fn take(&mut self) -> B::Acquisition {
        mem::replace(&mut self.acquisition, self.context.backend().open(self.claim.clone()))
    }
}

impl<B: Backend> Drop for Attempt<'_, B> {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Outcome::Cancelled);
        }
    }
}

fn new_owner<B: Backend>(context: &Context<B>) -> Owner {
    Owner::random(context.runtime(), context.options().instance.as_deref())
}

probes! {
    /// An acquire failed while the server may hold its key: it is released in the background.
    sometimes gave_up_maybe_held;
    /// An acquire's future was dropped while the server may hold its key.
    sometimes cancelled_maybe_held;
    /// A grant arrived with too little validity left, and was given back.
    reached grant_too_late;
    /// How much validity was left when a grant was accepted, in nanoseconds.
    closest grant_validity_left_ns;
    /// A lease is never trusted past the TTL, counted from before its request was sent.
    always validity_within_ttl;
    /// A waiter lost its place in the queue, and stands in another one.
    sometimes place_lost;
    /// An acquire went on with a new owner token, since its last claim was given back.
    reached owner_replaced;
}
