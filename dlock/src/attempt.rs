//! One acquisition under way, and what becomes of it when its future is dropped.

use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Answer, Backend, BackendError, Claim, Trail};
use crate::event::{Event, Outcome};
use crate::handle::Handle;
use crate::key::LockKey;
use crate::lock::Lock;
use crate::metrics::Meter;
use crate::removal;
use crate::runtime::{Elapsed, Instant, Runtime, timeout_at};
use crate::token::{FencingToken, Owner};

/// An acquisition whose end is not known yet. Dropped before it ended, it was cancelled; whatever the server may have
/// granted is then released in the background, as it is after a failure.
pub(crate) struct Attempt<'a, B: Backend> {
    lock: &'a Lock<B>,
    claim: Claim,
    trail: B::Trail,
    meter: Arc<Meter>,
    started: Instant,
    /// The place in line that was announced last.
    position: Option<u64>,
    /// How the present owner's claim ended, if a release was sent in its name.
    given_up: Option<Outcome>,
    ended: bool,
}

/// A grant that is still valid.
pub(crate) struct Lease {
    pub(crate) token: FencingToken,
    pub(crate) since: Instant,
    /// When the answer was judged.
    pub(crate) at: Instant,
    pub(crate) valid_until: Instant,
}

/// What one request came to.
pub(crate) enum Step {
    Granted(Lease),
    Held {
        left: Option<Duration>,
    },
    /// In line; the next step is worth it after [`Attempt::turn`].
    Queued,
    /// Granted, with too little of its validity left; it is being given back.
    Late,
    Failed(BackendError),
    /// The deadline passed while the server was being asked.
    Cut,
}

impl<'a, B: Backend> Attempt<'a, B> {
    pub(crate) fn begin(lock: &'a Lock<B>, key: &LockKey) -> Self {
        let claim = Claim { key: key.clone(), owner: new_owner(lock), ttl: lock.terms().ttl };
        Event::Requested { ttl: claim.ttl }.emit(&claim.key, &claim.owner);
        let (trail, meter) = (B::Trail::default(), lock.meters().of(key));
        let started = lock.runtime().now();
        Self { lock, claim, trail, meter, started, position: None, given_up: None, ended: false }
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Asks once. The owner stays the same from step to step, so that a grant whose answer got lost is recognised; where
    /// the backend can't do that, a step that failed gives back at once what it may have been granted.
    pub(crate) async fn step(&mut self, now: Instant, deadline: Instant) -> Step {
        let step = self.answer(now, deadline).await;
        if !B::REPEATABLE && self.trail.is_open() {
            match &step {
                Step::Held { .. } => self.give_up(Outcome::Contended),
                Step::Failed(error) => self.give_up(error.outcome()),
                _ => {}
            }
        }
        step
    }

    async fn answer(&mut self, now: Instant, deadline: Instant) -> Step {
        match self.ask(now, deadline).await {
            Ok(Ok(Answer::Granted { token, since, left })) => self.judge(token, since, left),
            Ok(Ok(Answer::Held { left })) => {
                self.meter.contended();
                Step::Held { left }
            }
            Ok(Ok(Answer::Queued { position })) => {
                self.queued(position);
                Step::Queued
            }
            Ok(Err(error)) => Step::Failed(error),
            Err(Elapsed) => Step::Cut,
        }
    }

    /// Waits until nobody is ahead any more, as far as can be told, or until `deadline`.
    pub(crate) async fn turn(&mut self, deadline: Instant) -> Result<(), BackendError> {
        let runtime = self.lock.runtime();
        let patience = runtime.now() + self.lock.options().request_timeout;
        let call = self.lock.backend().turn(&self.claim, &mut self.trail, deadline);
        match timeout_at(runtime, deadline, call).await {
            // What was asked shortly before the deadline and not answered by then says nothing of the server.
            Err(Elapsed) => Ok(()),
            Ok(Err(_)) if deadline < patience && runtime.now() >= deadline => Ok(()),
            Ok(turn) => turn,
        }
    }

    /// Waits until `until`, or until the server tells that the lease may be free.
    pub(crate) async fn freed(&mut self, until: Instant) {
        self.lock.backend().freed(&self.claim, &mut self.trail, until).await;
    }

    /// Hands over to the handle.
    pub(crate) fn succeed(mut self, lease: Lease) -> Handle<B> {
        self.ended = true;
        self.meter.acquired(lease.at.saturating_since(self.started));
        let valid = lease.valid_until.saturating_since(lease.at);
        let event = Event::Acquired { token: lease.token, ttl: self.claim.ttl, valid };
        event.emit(&self.claim.key, &self.claim.owner);
        let trail = mem::take(&mut self.trail);
        Handle::new(self.lock.clone(), self.claim.clone(), trail, Arc::clone(&self.meter), lease)
    }

    /// Ends with `error`; what may have been granted is given back.
    pub(crate) fn fail<E>(mut self, error: E, outcome: impl FnOnce(&E) -> Outcome) -> E {
        self.end(outcome(&error));
        error
    }

    /// Goes on as another owner if a release was sent in the name of the one before: that release may arrive late, and
    /// must then not end a lease that is in use.
    pub(crate) fn change_owner(&mut self) {
        let Some(outcome) = self.given_up.take() else { return };
        Event::NotAcquired { outcome }.emit(&self.claim.key, &self.claim.owner);
        self.claim.owner = new_owner(self.lock);
        self.position = None;
        Event::Retried { ttl: self.claim.ttl }.emit(&self.claim.key, &self.claim.owner);
    }

    fn queued(&mut self, position: u64) {
        if self.position.replace(position) != Some(position) {
            self.meter.contended();
            Event::Queued { position }.emit(&self.claim.key, &self.claim.owner);
        }
    }

    async fn ask(
        &mut self,
        now: Instant,
        deadline: Instant,
    ) -> Result<Result<Answer, BackendError>, Elapsed> {
        let runtime = self.lock.runtime();
        let patience = now + self.lock.options().request_timeout;
        let call = pin!(self.lock.backend().acquire(&self.claim, &mut self.trail, patience));
        if deadline >= patience {
            return Ok(call.await);
        }
        timeout_at(runtime, deadline, call).await
    }

    /// A grant counts only while enough of its validity is left; a later one is given back at once.
    fn judge(&mut self, token: FencingToken, since: Instant, left: Duration) -> Step {
        let valid_until = self.lock.terms().valid_until(since, left);
        let at = self.lock.runtime().now();
        if at + self.lock.options().min_validity < valid_until {
            return Step::Granted(Lease { token, since, at, valid_until });
        }
        self.give_up(Outcome::Expired);
        Step::Late
    }

    fn give_up(&mut self, outcome: Outcome) {
        self.given_up = Some(outcome);
        self.give_back();
    }

    fn end(&mut self, outcome: Outcome) {
        self.ended = true;
        self.meter.not_acquired(outcome);
        Event::NotAcquired { outcome }.emit(&self.claim.key, &self.claim.owner);
        if self.trail.is_open() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        removal::sweep(self.lock.clone(), self.claim.clone(), mem::take(&mut self.trail));
    }
}

impl<B: Backend> Drop for Attempt<'_, B> {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Outcome::Cancelled);
        }
    }
}

fn new_owner<B: Backend>(lock: &Lock<B>) -> Owner {
    Owner::random(lock.runtime(), lock.options().instance.as_deref())
}
