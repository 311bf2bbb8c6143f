//! A worker of the laboratory with its process, its options and its lock.

use std::future::Future;

use dlock::{AnyBackend, Backoff, DriftMargin, LockKey, Runtime};
use futures_util::future::BoxFuture;
use resource::Fencing;
use resource::worker::{Droppable, Pauses, Step};
use sim::Process;
use sim::faults::Call;
use sim::world::runtime::SimRuntime;

use super::given::{Given, Workplace};
use super::options::Options;
use super::worker::Worker as Spec;

/// The address of the resource.
pub(super) const RESOURCE_ADDRESS: &str = "resource:80";

/// A worker with its process, its options and its lock.
#[derive(Clone, Copy)]
pub(super) struct Seat<'a> {
    pub(super) process: &'a Process,
    pub(super) options: &'a Options,
    pub(super) spec: &'a Spec,
    /// The index of the worker in the options, from 0.
    pub(super) number: usize,
    /// The user's lock and rounds in place of the laboratory's own, if any.
    pub(super) given: &'a Given,
    /// Says if statements in PostgreSQL check tokens.
    pub(super) fencing: Fencing,
}

impl Seat<'_> {
    /// Returns the options of the worker's lock.
    pub(super) fn lock_options(&self) -> dlock::Options {
        let mut options = dlock::Options::new(self.options.ttl_of(self.spec).duration());
        options.permits = self.options.permits.unwrap_or(1);
        options.readers = self.options.readers;
        options.waiters_max = self.options.waiters_max;
        options.instance = Some(self.spec.name.clone());
        if let Some(wait) = self.spec.retry_every {
            options.backoff = Backoff { base: wait.duration(), max: wait.duration() };
        }
        if let Some(margin) = self.options.drift_margin {
            options.drift = DriftMargin { per_mille: 0, constant: margin.duration() };
        }
        options
    }

    /// Makes the lock that a user gives in place of the system's own, if any. Its servers are at `addresses`.
    pub(super) fn given_lock(
        &self,
        addresses: impl FnOnce() -> Vec<String>,
    ) -> Option<AnyBackend<SimRuntime>> {
        let make = self.given.lock.as_ref()?;
        make(&self.workplace(addresses()))
    }

    /// Returns the user's rounds in place of the laboratory's own, if any.
    pub(super) fn given_rounds(
        &self,
        addresses: impl FnOnce() -> Vec<String>,
    ) -> Option<BoxFuture<'static, ()>> {
        let make = self.given.worker.as_ref()?;
        make(&self.workplace(addresses()))
    }

    /// Returns the worker with the addresses of its servers, for a function that makes its lock.
    pub(super) fn workplace(&self, servers: Vec<String>) -> Workplace<'_> {
        Workplace {
            process: self.process,
            runtime: self.process.runtime(),
            options: self.options,
            worker: self.spec,
            servers,
            lock: self.lock_options(),
            resource: RESOURCE_ADDRESS,
            fencing: self.fencing,
        }
    }

    /// Returns the addresses of a cluster's members, rotated by the worker's number: neighbours begin with
    /// different members.
    pub(super) fn members(&self, servers: &[String], port: u16) -> Vec<String> {
        let mut members: Vec<_> = servers.iter().map(|name| format!("{name}:{port}")).collect();
        let first = self.number % members.len().max(1);
        members.rotate_left(first);
        members
    }

    /// Waits between two rounds.
    pub(super) async fn think(&self) {
        let runtime = self.process.runtime();
        runtime.sleep_until(runtime.now() + self.spec.think.duration()).await;
    }
}

/// Yields at each step of a worker, where a fault that struck in the step's event takes effect. Drops futures
/// that a fault cancels.
#[derive(Clone)]
pub(crate) struct Yields(pub(crate) Process);

impl Pauses for Yields {
    async fn at(&self, _: Step) {
        self.0.runtime().yield_now().await;
    }

    async fn run<F>(&self, which: Droppable, future: F) -> Option<F::Output>
    where
        F: Future + Send,
        F::Output: Send,
    {
        let call = match which {
            Droppable::Section => return Some(future.await),
            Droppable::Renewed => Call::Renew,
            Droppable::Release => Call::Release,
        };
        self.0.cancellable(call, future).await
    }
}

/// Parses the key of a resource, which schedules write as `type:id`.
pub(super) fn lock_key(name: &str) -> Result<LockKey, dlock::KeyError> {
    let (kind, id) = name.split_once(':').unwrap_or(("resource", name));
    LockKey::new(kind, id)
}
