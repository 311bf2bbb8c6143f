//! The steps of a single-flight worker.

use dlock::flight::{FlightResult, Results, Stored};
use dlock::{AnyBackend, FencingToken, Handle, LockKey};
use sim::world::runtime::SimRuntime;

use super::worker::Hands;
use crate::laboratory::flights::Flights;

impl Hands {
    /// Begins a flight; returns the token of the result that the worker knows, 0 if there is none. Returns
    /// `None` if the resource does not answer.
    pub async fn begin_flight(&self, key: &LockKey) -> Option<u64> {
        Some(self.flights().begin(key).await?.map_or(0, FencingToken::as_u64))
    }

    /// Looks for a result of `key` above the token `known`, and returns it from the flight. Returns false if
    /// there is none.
    pub async fn finds_result(&self, key: &LockKey, known: u64) -> bool {
        let token = self.stored_result(key).await.map(|result| result.token);
        let token = token.filter(|token| token.as_u64() > known);
        token.map(|token| self.return_result(key, token)).is_some()
    }

    /// Returns the result of `key` that is stored; `None` if there is none, or no answer.
    pub async fn stored_result(&self, key: &LockKey) -> Option<FlightResult> {
        self.flights().results.get(key, self.deadline()).await.ok().flatten()
    }

    /// Computes under the lease of `handle`, stores the result, and returns it if the store accepts it.
    pub async fn compute(&self, handle: &Handle<AnyBackend<SimRuntime>>) {
        if self.store_computed(handle).await {
            self.return_result(handle.key(), handle.fence());
        }
    }

    /// Computes under the lease of `handle`, and stores the result. Returns whether the store accepts it.
    pub async fn store_computed(&self, handle: &Handle<AnyBackend<SimRuntime>>) -> bool {
        let (flights, token) = (self.flights(), handle.fence());
        let result = FlightResult { token, value: flights.compute(handle.key(), token).await };
        let stored = flights.results.put(handle.key(), &result, handle.owner(), self.deadline()).await;
        stored == Ok(Stored::Accepted)
    }

    /// Records that the flight returns the result of `key` with this token.
    pub fn return_result(&self, key: &LockKey, token: FencingToken) {
        history::emit!(ResultReturned { key: key.id_hash(), token: token.as_u64() });
    }

    /// Computations of one round.
    pub(super) fn flights(&self) -> Flights<'_> {
        Flights::new(&self.process, &self.spec)
    }
}
