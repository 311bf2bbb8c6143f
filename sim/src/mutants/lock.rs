//! The lock with one mistake: a backend that does what the correct one does, but for one call.

use std::time::Duration;

use dlock::backend::{self, Answer, Backend, BackendError, Claim, Renewal};
use dlock::redis::{Redis, Trail};
use dlock::{DriftMargin, Instant, Released, timeout_at};

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

/// What is remembered of one acquisition: the correct backend's memory, and a request by plain commands.
#[derive(Default)]
pub(crate) struct MutantTrail {
    pub(super) correct: Trail,
    /// Whether a plain command was sent and not answered.
    pub(super) plain: bool,
    /// When the request for the last grant or renewal was sent, if the mistake needs to know.
    pub(super) renewed: Option<Instant>,
}

impl backend::Trail for MutantTrail {
    fn is_open(&self) -> bool {
        self.plain || self.correct.is_open()
    }
}

impl MutantLock {
    /// Wraps the correct lock on the server at `address`; `drift` is the margin that the lock takes off.
    pub(crate) fn new(correct: Redis<SimRuntime>, address: &str, mutant: Mutant, drift: DriftMargin) -> Self {
        let wire = Wire::new(correct.runtime().clone(), address);
        Self { correct, wire, mutant, drift }
    }

    /// What a lease of `ttl` is trusted less.
    pub(super) fn margin(&self, ttl: Duration) -> Duration {
        self.drift.of(ttl)
    }
}

impl Backend for MutantLock {
    type Runtime = SimRuntime;
    type Trail = MutantTrail;

    fn runtime(&self) -> &SimRuntime {
        self.correct.runtime()
    }

    async fn acquire(
        &self,
        claim: &Claim,
        trail: &mut MutantTrail,
        patience: Instant,
    ) -> Result<Answer, BackendError> {
        match self.mutant {
            Mutant::SetnxThenPexpire => {
                let acquire = setnx::acquire(self, claim, trail);
                timeout_at(self.runtime(), patience, acquire).await.unwrap_or(Err(BackendError::NoAnswer))
            }
            Mutant::NoCleanup => no_cleanup::acquire(self, claim, patience).await,
            Mutant::ValidityFromReply => validity_from_reply::acquire(self, claim, trail, patience).await,
            Mutant::MarginAdded => margin_added::acquire(self, claim, trail, patience).await,
            Mutant::WallClock => wall_clock::acquire(self, claim, trail, patience).await,
            Mutant::TokenByGet => token_by_get::acquire(self, claim, trail, patience).await,
            Mutant::LateLoss => late_loss::acquire(self, claim, trail, patience).await,
            Mutant::ValidityUnchecked => unchecked::acquire(self, claim, trail, patience).await,
            _ => self.correct.acquire(claim, &mut trail.correct, patience).await,
        }
    }

    async fn renew(
        &self,
        claim: &Claim,
        trail: &mut MutantTrail,
        patience: Instant,
    ) -> Result<Renewal, BackendError> {
        match self.mutant {
            Mutant::BlindDel => blind_del::renew(self, claim, patience).await,
            Mutant::SilentReacquire => reacquire::renew(self, claim, trail, patience).await,
            Mutant::ValidityFromReply => validity_from_reply::renew(self, claim, trail, patience).await,
            Mutant::MarginAdded => margin_added::renew(self, claim, trail, patience).await,
            Mutant::LateLoss => late_loss::renew(self, claim, trail, patience).await,
            Mutant::RenewalLogged => renewal_logged::renew(self, claim, trail, patience).await,
            Mutant::WallClock => wall_clock::renew(self, claim, trail, patience).await,
            _ => self.correct.renew(claim, &mut trail.correct, patience).await,
        }
    }

    async fn release(
        &self,
        claim: &Claim,
        trail: &mut MutantTrail,
        patience: Instant,
    ) -> Result<Released, BackendError> {
        let released = match self.mutant {
            Mutant::BlindDel => blind_del::release(self, claim, trail, patience).await?,
            Mutant::CounterDeleted => counter_deleted::release(self, claim, trail, patience).await?,
            _ => self.correct.release(claim, &mut trail.correct, patience).await?,
        };
        trail.plain = false;
        Ok(released)
    }
}
