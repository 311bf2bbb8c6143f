//! The lock with one mistake: a backend that does what the correct one does, but for one call.

use std::time::Duration;

use dlock::redis::Redis;
use dlock::{
    Acquisition, Answer, Backend, BackendError, Claim, DriftMargin, Instant, Released, Renewal, Runtime,
    timeout_at,
};

use super::wire::Wire;
use super::{
    Mutant, blind_del, counter_deleted, late_loss, margin_added, no_cleanup, reacquire, renewal_logged,
    setnx, token_by_get, unchecked, validity_from_reply, wall_clock,
};
use crate::world::runtime::SimRuntime;

/// The Redis lock with the mistake of `mutant`.
#[derive(Clone)]
pub(crate) struct MutantLock {
    pub(super) correct: Redis<SimRuntime>,
    pub(super) wire: Wire<SimRuntime>,
    mutant: Mutant,
    drift: DriftMargin,
}

/// One acquisition: the correct one, and requests by plain commands.
pub(crate) struct MutantAcquisition {
    pub(super) lock: MutantLock,
    pub(super) claim: Claim,
    pub(super) correct: <Redis<SimRuntime> as Backend>::Acquisition,
    /// Whether a plain command was sent and not answered.
    pub(super) plain: bool,
    /// When the request for the last grant or renewal was sent, if the mistake needs to know.
    pub(super) renewed: Option<Instant>,
}

impl MutantLock {
    /// Wraps the correct lock on the server at `address`; `drift` is the margin that the lock takes off.
    pub(crate) fn new(correct: Redis<SimRuntime>, address: &str, mutant: Mutant, drift: DriftMargin) -> Self {
        let wire = Wire::new(correct.runtime().clone(), address);
        Self { correct, wire, mutant, drift }
    }
}

impl Backend for MutantLock {
    type Runtime = SimRuntime;
    type Acquisition = MutantAcquisition;

    fn runtime(&self) -> &SimRuntime {
        self.correct.runtime()
    }

    fn system(&self) -> &'static str {
        self.correct.system()
    }

    fn open(&self, claim: Claim) -> MutantAcquisition {
        let correct = self.correct.open(claim.clone());
        MutantAcquisition { lock: self.clone(), claim, correct, plain: false, renewed: None }
    }
}

impl MutantAcquisition {
    pub(super) fn runtime(&self) -> &SimRuntime {
        self.lock.runtime()
    }

    /// What the lease is trusted less.
    pub(super) fn margin(&self) -> Duration {
        self.lock.drift.of(self.claim.ttl)
    }
}

impl Acquisition for MutantAcquisition {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        match self.lock.mutant {
            Mutant::SetnxThenPexpire => {
                let runtime = self.runtime().clone();
                let acquire = setnx::acquire(self);
                timeout_at(&runtime, deadline, acquire).await.unwrap_or(Err(BackendError::NoAnswer))
            }
            Mutant::NoCleanup => no_cleanup::acquire(self, deadline).await,
            Mutant::ValidityFromReply => validity_from_reply::acquire(self, deadline).await,
            Mutant::MarginAdded => margin_added::acquire(self, deadline).await,
            Mutant::WallClock => wall_clock::acquire(self, deadline).await,
            Mutant::TokenByGet => token_by_get::acquire(self, deadline).await,
            Mutant::LateLoss => late_loss::acquire(self, deadline).await,
            Mutant::ValidityUnchecked => unchecked::acquire(self, deadline).await,
            _ => self.correct.request(deadline).await,
        }
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.runtime().sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        match self.lock.mutant {
            Mutant::BlindDel => blind_del::renew(self, deadline).await,
            Mutant::SilentReacquire => reacquire::renew(self, deadline).await,
            Mutant::ValidityFromReply => validity_from_reply::renew(self, deadline).await,
            Mutant::MarginAdded => margin_added::renew(self, deadline).await,
            Mutant::LateLoss => late_loss::renew(self, deadline).await,
            Mutant::RenewalLogged => renewal_logged::renew(self, deadline).await,
            Mutant::WallClock => wall_clock::renew(self, deadline).await,
            _ => self.correct.renew(deadline).await,
        }
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let released = match self.lock.mutant {
            Mutant::BlindDel => blind_del::release(self, deadline).await?,
            Mutant::CounterDeleted => counter_deleted::release(self, deadline).await?,
            _ => self.correct.release(deadline).await?,
        };
        self.plain = false;
        Ok(released)
    }

    fn may_be_held(&self) -> bool {
        self.plain || self.correct.may_be_held()
    }
}
