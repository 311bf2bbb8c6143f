//! The options of the lock laboratory: its workers, their keys, the lock servers and the resource.

use history::Capacity;
use serde::{Deserialize, Serialize};
use sim::{Schedule, Span};

use super::cron::{Cron, TickStore};
use super::default::is_default;
use super::servers::{Etcd, Redis, Resource};
use super::system::System;
use super::worker::Worker;

/// The name of the protected resource.
pub(super) const RESOURCE: &str = "resource";

/// The laboratory's own part of a schedule: workers, keys, lock servers and resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The lock system that the workers use.
    pub system: System,
    /// The TTL of leases.
    pub ttl: Span,
    /// The drift margin: a client trusts its lease for this much less than the TTL. Default: the library's
    /// own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drift_margin: Option<Span>,
    /// The number of permits of each lock, 2 to 9: a semaphore. Default: none, a mutex.
    #[serde(default, skip_serializing_if = "is_default")]
    pub permits: Option<u32>,
    /// True if each lock has readers and a writer: workers with `shared = true` read under it. Default:
    /// false, a mutex.
    #[serde(default, skip_serializing_if = "is_default")]
    pub readers: bool,
    /// The most workers that may wait for a key at once, 1 to 99; one more is refused at once. Default: none,
    /// any number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waiters_max: Option<u32>,
    /// The keys that workers lock, `type:id` each. Default: `orders:42` alone.
    #[serde(default = "default_keys")]
    pub keys: Vec<String>,
    /// The limit of the verdict `stuck`: the longest time, after all faults have healed, for which a waiter
    /// may wait for a key, or a key may stay locked. Default: three times the longest TTL; with sessions at
    /// least the longest TTL and 6 s, and with a queue in Redis the longest TTL and 10 s.
    #[serde(default, skip_serializing_if = "is_default")]
    pub within: Option<Span>,
    /// The name of the one mistake of all workers' locks, or of the resource, which the simulator must find.
    /// Default: none.
    ///
    /// The laboratory itself knows no mistakes. The caller of [`Lab::with_lock`](super::Lab::with_lock),
    /// [`Lab::with_worker`](super::Lab::with_worker) or [`Lab::with_resource`](super::Lab::with_resource)
    /// defines the name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mutant: Option<String>,
    /// True if the lock servers and their clients speak TLS. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tls: bool,
    /// The Redis servers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub redis: Redis,
    /// The lock on etcd.
    #[serde(default, skip_serializing_if = "is_default")]
    pub etcd: Etcd,
    /// The protected resource.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resource: Resource,
    /// The cron of the workers with `mode = "cron"`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cron: Cron,
    /// The workers.
    #[serde(rename = "worker")]
    pub workers: Vec<Worker>,
}

/// Creates a schedule of `system` with these workers, no faults, and defaults for all else.
pub fn schedule(about: &str, system: System, ttl: Span, workers: Vec<Worker>) -> Schedule<Options> {
    Schedule::new(about, Options::new(system, ttl, workers))
}

impl Options {
    /// Creates options of `system` with these workers, and defaults for all else.
    pub fn new(system: System, ttl: Span, workers: Vec<Worker>) -> Self {
        Self {
            system,
            ttl,
            drift_margin: None,
            permits: None,
            readers: false,
            waiters_max: None,
            keys: default_keys(),
            within: None,
            mutant: None,
            tls: false,
            redis: Redis::default(),
            etcd: Etcd::default(),
            resource: Resource::default(),
            cron: Cron::default(),
            workers,
        }
    }

    /// Returns the tables of options of lock servers that are not as by default.
    pub(super) fn tables(&self) -> impl Iterator<Item = &'static str> {
        let set = [("etcd", !is_default(&self.etcd)), ("redis", !is_default(&self.redis))];
        set.into_iter().filter_map(|(table, is_set)| is_set.then_some(table))
    }

    /// Returns true if the world has a PostgreSQL server: for the record of a cron, or for the job queue.
    pub fn has_postgres(&self) -> bool {
        self.system == System::POSTGRES || self.cron.record == TickStore::Postgres
    }

    /// Returns the worker with this name.
    pub fn worker(&self, name: &str) -> Option<&Worker> {
        self.workers.iter().find(|worker| worker.name == name)
    }

    /// Returns the key that this worker locks and writes, if it locks one alone.
    pub fn key_of<'a>(&'a self, worker: &'a Worker) -> &'a str {
        worker.key.as_deref().or(self.keys.first().map(String::as_str)).unwrap_or_default()
    }

    /// Returns the leases of each lock that may be valid at once.
    pub fn capacity(&self) -> Capacity {
        if self.readers {
            return Capacity::ReadersWriter;
        }
        self.permits.map_or(Capacity::Mutex, |permits| Capacity::Permits(permits as usize))
    }

    /// Returns the keys that this worker locks together, in the order in which it names them: one, unless it
    /// locks several.
    pub fn keys_of<'a>(&'a self, worker: &'a Worker) -> Vec<&'a str> {
        let names = |keys: &'a [String]| keys.iter().map(String::as_str).collect();
        match worker.locks_several() {
            false => vec![self.key_of(worker)],
            true if worker.keys.is_empty() => names(&self.keys),
            true => names(&worker.keys),
        }
    }

    /// Returns the most pieces of work of one round of this worker: one for each of its keys, or one for each
    /// tick of a firing or each part of a job.
    pub(super) fn works_of(&self, worker: &Worker) -> u64 {
        if worker.fires() {
            return self.cron.runs_max();
        }
        if worker.runs_jobs() {
            return u64::from(worker.writes);
        }
        let leases = if worker.upgrades() { 2 } else { worker.nests().unwrap_or(1) };
        self.keys_of(worker).len() as u64 * u64::from(leases)
    }

    /// Returns the TTL of this worker's leases.
    pub fn ttl_of(&self, worker: &Worker) -> Span {
        worker.ttl.unwrap_or(self.ttl)
    }

    /// Returns the limit of the verdict `stuck`: see the field `within`.
    pub fn within(&self) -> Span {
        self.within.unwrap_or_else(|| {
            let longest = self.workers.iter().map(|worker| self.ttl_of(worker)).max().unwrap_or(self.ttl);
            let waits_for_dead = self.cluster().is_some() || self.waiters_max.is_some();
            let dead = waits_for_dead.then(|| self.longest_retry().plus(longest));
            longest.times(3).max(dead.unwrap_or_default())
        })
    }

    /// Returns the longest time between two requests of a waiter: the library's longest backoff (2 s), its
    /// longest wait for an answer (1 s), and the latency of the network. With sessions, the backoff of the
    /// connection comes before (2 s). In a queue of Redis a dead waiter comes before, for the time of two
    /// requests (6 s).
    pub(super) fn longest_retry(&self) -> Span {
        Span::from_secs(match self.cluster() {
            Some(_) => 6,
            None if self.waiters_max.is_some() => 10,
            None => 4,
        })
    }
}

fn default_keys() -> Vec<String> {
    vec!["orders:42".into()]
}
