//! A lock on one Redis that behaves as the library's own, except in the calls that its mistake replaces.

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use dlock::redis::Redis;
use dlock::{
    Acquisition, Answer, AnyBackend, Backend, BackendError, Claim, Instant, Released, Renewal, Runtime,
};

use crate::lab::Workplace;
use crate::lab::wire::Wire;
use crate::world::runtime::SimRuntime;

/// A mistake: it replaces one or more of the correct calls.
pub(super) trait Mistake: Send + Sync + 'static {
    /// As [`Acquisition::request`].
    fn request(
        own: &mut Attempt,
        deadline: Instant,
    ) -> impl Future<Output = Result<Answer, BackendError>> + Send {
        own.correct.request(deadline)
    }

    /// As [`Acquisition::renew`].
    fn renew(
        own: &mut Attempt,
        deadline: Instant,
    ) -> impl Future<Output = Result<Renewal, BackendError>> + Send {
        own.correct.renew(deadline)
    }

    /// As [`Acquisition::release`].
    fn release(
        own: &mut Attempt,
        deadline: Instant,
    ) -> impl Future<Output = Result<Released, BackendError>> + Send {
        own.correct.release(deadline)
    }
}

/// One acquisition with a mistake: the correct acquisition, and a client for plain commands.
pub(super) struct Attempt {
    backend: Redis<SimRuntime>,
    pub(super) wire: Wire<SimRuntime>,
    pub(super) claim: Claim,
    pub(super) correct: <Redis<SimRuntime> as Backend>::Acquisition,
    /// The drift margin.
    pub(super) margin: Duration,
    /// True while a plain command has been sent and not answered.
    pub(super) plain: bool,
    /// The send time of the request for the last grant or renewal, if the mistake needs it.
    pub(super) renewed: Option<Instant>,
}

impl Attempt {
    pub(super) fn runtime(&self) -> &SimRuntime {
        self.backend.runtime()
    }

    /// Opens another acquisition of the same claim.
    pub(super) fn another(&self) -> <Redis<SimRuntime> as Backend>::Acquisition {
        self.backend.open(self.claim.clone())
    }

    pub(super) fn may_be_held(&self) -> bool {
        self.plain || self.correct.may_be_held()
    }
}

/// The Redis lock with the mistake `M`.
struct Mistaken<M> {
    correct: Redis<SimRuntime>,
    wire: Wire<SimRuntime>,
    drift: dlock::DriftMargin,
    mistake: PhantomData<fn() -> M>,
}

/// One acquisition with the mistake `M`.
struct MistakenAcquisition<M>(Attempt, PhantomData<fn() -> M>);

/// Returns the lock of a worker with the mistake `M`.
pub(super) fn on_redis<M: Mistake>(place: &Workplace<'_>) -> Option<AnyBackend<SimRuntime>> {
    let address = place.servers.first()?;
    let correct = Redis::new(place.runtime.clone(), address, place.options.redis_lock()).ok()?;
    let wire = Wire::new(place.runtime.clone(), address);
    Some(AnyBackend::new(Mistaken::<M> { correct, wire, drift: place.lock.drift, mistake: PhantomData }))
}

impl<M> Clone for Mistaken<M> {
    fn clone(&self) -> Self {
        let (correct, wire) = (self.correct.clone(), self.wire.clone());
        Self { correct, wire, drift: self.drift, mistake: PhantomData }
    }
}

impl<M: Mistake> Backend for Mistaken<M> {
    type Runtime = SimRuntime;
    type Acquisition = MistakenAcquisition<M>;

    fn runtime(&self) -> &SimRuntime {
        self.correct.runtime()
    }

    fn system(&self) -> &'static str {
        self.correct.system()
    }

    fn open(&self, claim: Claim) -> MistakenAcquisition<M> {
        let attempt = Attempt {
            backend: self.correct.clone(),
            wire: self.wire.clone(),
            correct: self.correct.open(claim.clone()),
            margin: self.drift.of(claim.ttl),
            claim,
            plain: false,
            renewed: None,
        };
        MistakenAcquisition(attempt, PhantomData)
    }
}

impl<M: Mistake> Acquisition for MistakenAcquisition<M> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        M::request(&mut self.0, deadline).await
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.0.runtime().sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        M::renew(&mut self.0, deadline).await
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let released = M::release(&mut self.0, deadline).await?;
        self.0.plain = false;
        Ok(released)
    }

    fn may_be_held(&self) -> bool {
        self.0.may_be_held()
    }
}
