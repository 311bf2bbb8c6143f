//! Redlock as it was published, with one of the mistakes that it invites: each node counts for itself, the largest count of
//! the majority is the token, and there is no second phase.
//!
//! Sources: Kleppmann, "How to do distributed locking" (2016), on the missing token; B12 and B17 of the project's list of
//! bugs, on the validity.

use std::time::Duration;

use dlock::backend::{self, Answer, Backend, BackendError, Claim, Renewal};
use dlock::redis::{Redis, Trail};
use dlock::{Instant, Released, Runtime};
use futures_util::future::join_all;

use super::Mutant;
use super::wall_clock::Readings;
use crate::world::runtime::SimRuntime;

/// Redlock without the second phase, with the mistake of `mutant`.
#[derive(Clone)]
pub(crate) struct PlainRedlock {
    nodes: Vec<Redis<SimRuntime>>,
    runtime: SimRuntime,
    mutant: Mutant,
}

/// What was sent to each node, by number.
#[derive(Default)]
pub(crate) struct PlainTrail(Vec<Trail>);

impl backend::Trail for PlainTrail {
    fn is_open(&self) -> bool {
        self.0.iter().any(backend::Trail::is_open)
    }
}

impl PlainRedlock {
    /// On the nodes at `addresses`.
    pub(crate) fn new(runtime: &SimRuntime, addresses: &[String], mutant: Mutant) -> Self {
        let nodes = addresses.iter().map(|address| Redis::new(runtime.clone(), address)).collect();
        Self { nodes, runtime: runtime.clone(), mutant }
    }

    fn is_majority(&self, count: usize) -> bool {
        count * 2 > self.nodes.len()
    }

    /// How long one node may take: well under the TTL. A client that gets the time wrong that replies take has no timeout
    /// either, which would save it.
    fn patience(&self, claim: &Claim, patience: Instant) -> Instant {
        if self.mutant != Mutant::LargestCount {
            return Instant::MAX;
        }
        patience.min(self.runtime.now() + (claim.ttl / 10).max(Duration::from_millis(50)))
    }

    /// From when the lease counts: before the first request, unless the mistake is about that.
    fn since(&self, began: &Readings) -> Instant {
        match self.mutant {
            Mutant::ValidityFromReply => self.runtime.now(),
            Mutant::WallClock => began.believe(began.monotonic, &self.runtime),
            _ => began.monotonic,
        }
    }

    async fn release_all(&self, claim: &Claim, trail: &mut PlainTrail, patience: Instant) -> usize {
        trail.0.resize_with(self.nodes.len(), Trail::default);
        let calls =
            self.nodes.iter().zip(&mut trail.0).map(|(node, trail)| node.release(claim, trail, patience));
        join_all(calls).await.iter().filter(|answer| matches!(answer, Ok(Released::Done))).count()
    }
}

impl Backend for PlainRedlock {
    type Runtime = SimRuntime;
    type Trail = PlainTrail;

    const REPEATABLE: bool = false;

    fn runtime(&self) -> &SimRuntime {
        &self.runtime
    }

    async fn acquire(
        &self,
        claim: &Claim,
        trail: &mut PlainTrail,
        patience: Instant,
    ) -> Result<Answer, BackendError> {
        let began = Readings::of(&self.runtime);
        trail.0.resize_with(self.nodes.len(), Trail::default);
        let each = self.patience(claim, patience);
        let calls = self.nodes.iter().zip(&mut trail.0).map(|(node, trail)| node.acquire(claim, trail, each));
        let answers = join_all(calls).await;
        let tokens = answers.iter().filter_map(|answer| match answer {
            Ok(Answer::Granted { token, .. }) => Some(*token),
            _ => None,
        });
        // The largest count of the majority: another majority may count less.
        match tokens.clone().max().filter(|_| self.is_majority(tokens.count())) {
            Some(token) => Ok(Answer::Granted { token, since: self.since(&began), left: claim.ttl }),
            None => Ok(Answer::Held { left: None }),
        }
    }

    async fn renew(
        &self,
        claim: &Claim,
        trail: &mut PlainTrail,
        patience: Instant,
    ) -> Result<Renewal, BackendError> {
        let began = Readings::of(&self.runtime);
        let each = self.patience(claim, patience);
        let calls = self.nodes.iter().zip(&mut trail.0).map(|(node, trail)| node.renew(claim, trail, each));
        let answers = join_all(calls).await;
        let extended = answers.iter().filter(|answer| matches!(answer, Ok(Renewal::Extended { .. }))).count();
        if self.is_majority(extended) {
            return Ok(Renewal::Extended { since: self.since(&began), left: claim.ttl });
        }
        Ok(Renewal::NotOwner)
    }

    async fn release(
        &self,
        claim: &Claim,
        trail: &mut PlainTrail,
        patience: Instant,
    ) -> Result<Released, BackendError> {
        let done = self.release_all(claim, trail, self.patience(claim, patience)).await;
        Ok(if self.is_majority(done) { Released::Done } else { Released::NotOwner })
    }
}
