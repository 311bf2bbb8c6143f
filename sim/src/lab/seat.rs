//! A worker of the laboratory, and what it works with.

use dlock::{AnyBackend, DriftMargin, LockKey, Runtime};
use futures_util::future::BoxFuture;
use resource::worker::{Pauses, Step};

use super::given::{Given, Workplace};
use super::options::Options;
use super::worker::Worker as Spec;
use crate::sim::Process;
use crate::world::runtime::SimRuntime;

/// Where workers reach the resource.
pub(super) const RESOURCE_ADDRESS: &str = "resource:80";

/// A worker, and what it works with.
#[derive(Clone, Copy)]
pub(super) struct Seat<'a> {
    pub(super) process: &'a Process,
    pub(super) options: &'a Options,
    pub(super) spec: &'a Spec,
    /// Which of the workers it is, from 0.
    pub(super) number: usize,
    /// What makes its lock and its rounds, if those are not the laboratory's own.
    pub(super) given: &'a Given,
}

impl Seat<'_> {
    /// The options of the worker's lock.
    pub(super) fn lock_options(&self) -> dlock::Options {
        let mut options = dlock::Options::new(self.options.ttl_of(self.spec).duration());
        options.instance = Some(self.spec.name.clone());
        if let Some(margin) = self.options.drift_margin {
            options.drift = DriftMargin { per_mille: 0, constant: margin.duration() };
        }
        options
    }

    /// The lock that is to be used instead of the system's own; its servers are at `addresses`.
    pub(super) fn given_lock(
        &self,
        addresses: impl FnOnce() -> Vec<String>,
    ) -> Option<AnyBackend<SimRuntime>> {
        let make = self.given.lock.as_ref()?;
        make(&self.workplace(addresses()))
    }

    /// The rounds that are to be worked instead of the laboratory's own.
    pub(super) fn given_rounds(
        &self,
        addresses: impl FnOnce() -> Vec<String>,
    ) -> Option<BoxFuture<'static, ()>> {
        let make = self.given.worker.as_ref()?;
        make(&self.workplace(addresses()))
    }

    fn workplace(&self, servers: Vec<String>) -> Workplace<'_> {
        Workplace {
            process: self.process,
            runtime: self.process.runtime(),
            options: self.options,
            worker: self.spec,
            servers,
            lock: self.lock_options(),
            resource: RESOURCE_ADDRESS,
        }
    }

    /// The members of a cluster, as the worker knows them: each begins with another one.
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

/// Lets a worker pause at each step: a fault that struck in the step's event takes hold there.
#[derive(Clone)]
pub(super) struct Yields(pub(super) SimRuntime);

impl Pauses for Yields {
    async fn at(&self, _: Step) {
        self.0.yield_now().await;
    }
}

/// The key of a resource that a schedule writes `type:id`.
pub(super) fn lock_key(name: &str) -> Result<LockKey, dlock::KeyError> {
    let (kind, id) = name.split_once(':').unwrap_or(("resource", name));
    LockKey::new(kind, id)
}
