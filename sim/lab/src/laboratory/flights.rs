//! A round of a single-flight worker: it gets a result that is newer than the one it knows, from another
//! worker or by computing it.

use std::sync::atomic::{AtomicU32, Ordering};

use dlock::flight::{Fresh, Results, SingleFlight};
use dlock::{Backend, Cap, FencingToken, Instant, Lock, LockKey};
use history::emit;
use resource::client::Client;
use resource::flight::ResourceResults;
use sim::Process;
use sim::world::runtime::SimRuntime;

use super::seat::RESOURCE_ADDRESS;
use super::worker::Worker as Spec;

/// A worker of flights, with its results in the resource.
pub(crate) struct Flights<'a> {
    process: &'a Process,
    spec: &'a Spec,
    pub(crate) results: ResourceResults<SimRuntime>,
    /// The number of computations that are still to fail.
    failures: AtomicU32,
}

impl<'a> Flights<'a> {
    pub(crate) fn new(process: &'a Process, spec: &'a Spec) -> Self {
        let runtime = process.runtime();
        let client = Client::new(runtime.clone(), RESOURCE_ADDRESS);
        let failures = AtomicU32::new(spec.fails.unwrap_or_default());
        Self { process, spec, results: ResourceResults::new(runtime, client), failures }
    }

    /// Runs one flight; its result is in the history.
    pub(crate) async fn round<B: Backend<Runtime = SimRuntime>>(&self, lock: &Lock<B>, key: &LockKey) {
        let Some(known) = self.begin(key).await else { return };
        let fresh = known.map_or(Fresh::Any, Fresh::Above);
        // Schedules of flights have mutexes.
        let Ok(flight) = SingleFlight::new(lock.clone(), self.results.clone(), LONGEST) else { return };
        let flown = flight.run(key, fresh, self.deadline(), |token| self.compute(key, token)).await;
        if let Ok(flown) = flown {
            emit!(ResultReturned { key: key.id_hash(), token: flown.result.token.as_u64() });
        }
    }

    /// Looks up the token of the result that the worker knows, and begins a flight to a newer one. Returns
    /// `None` if the resource does not answer.
    pub(crate) async fn begin(&self, key: &LockKey) -> Option<Option<FencingToken>> {
        let known = self.results.get(key, self.deadline()).await.ok()?.map(|result| result.token);
        emit!(FlightStarted { key: key.id_hash(), above: known.map_or(0, FencingToken::as_u64) });
        Some(known)
    }

    /// Computes a result of `key` under the lease with this token, as long as the worker works; the first
    /// computations fail.
    pub(crate) async fn compute(&self, key: &LockKey, token: FencingToken) -> Result<Vec<u8>, String> {
        emit!(ComputationStarted { key: key.id_hash(), token: token.as_u64() });
        self.process.sleep(self.spec.work.duration()).await;
        let left =
            self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() {
            emit!(ComputationFailed { key: key.id_hash(), token: token.as_u64() });
        }
        self.process.point("worked");
        self.process.runtime().yield_now().await;
        match left {
            Ok(_) => Err(format!("{} failed", self.spec.name)),
            Err(_) => Ok(format!("{} {token}", self.spec.name).into_bytes()),
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.process.now() + self.spec.deadline.duration()
    }
}

/// Longest time of a computation: longer than any run.
const LONGEST: Cap = Cap(std::time::Duration::from_secs(3600));
