//! A failure schedule: the cluster, the workload and the faults of a run, as data.
//!
//! A schedule is written by hand (the corpus in `seeds/`), drawn from a seed, shrunk and kept; it is TOML, and strict: what
//! it can't mean is an error that names the line, never a silent no-op. Read [`Schedule`] first, then:
//!
//! - `worker`: the workload, a [`Worker`] each
//! - `cluster`: what they run against: [`System`], [`Network`], [`Redis`], [`Resource`]
//! - [`crate::faults`]: what may go wrong; `scene`: what faults ask of a schedule
//! - `point`: the [`Point`]s of the protocol at which a fault may be aimed
//! - `expect`: what a run of the schedule must give
//! - `validate`, `triggers`: the rules that a schedule must keep
//! - `draw`: random schedules, for exploration; `draw_class`: faults of one class
//! - `write`: a schedule as TOML again

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::de::{DeTable, ValueDeserializer};

use crate::faults::{Faults, RawFault};
use crate::mutants::Mutant;
use crate::place::line_at;

mod cluster;
mod draw;
mod draw_class;
mod error;
mod expect;
mod point;
mod scene;
mod triggers;
mod validate;
mod worker;
mod write;

pub use crate::faults::{Fault, Link, Part, Trigger};
pub use crate::names::UnknownName;
pub use crate::place::{Invalid, Place};
pub use crate::span::{Shift, Span, SpanError};
pub use cluster::{
    Etcd, Latency, Network, Persistence, Recipe, Redis, Resource, Store, System, Tokens, Waiting,
};
pub use draw::{draw, draw_class, draw_for};
pub use draw_class::FaultClass;
pub use error::ScheduleError;
pub use expect::{Arm, Expect, Outcome, Verdict, Write};
pub use point::{Kind, Point};
pub use worker::{ReadMode, ReleaseMode, Worker, WorkerMode};

/// The name of the protected resource.
const RESOURCE: &str = "resource";

/// The name of the replica, where there is one.
const REPLICA: &str = "replica-1";

/// The members of an etcd cluster or a ZooKeeper ensemble.
const ENSEMBLE: u32 = 3;

/// The cluster, the workload and the faults of a run. Same schedule, same seed, same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// What it shows, for someone who has never seen it.
    pub about: String,
    /// Which lock the workers use.
    pub system: System,
    /// The seed of all randomness in its runs: latencies, owner tokens, backoff. Default 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u64,
    /// The TTL of leases.
    pub ttl: Span,
    /// By how much a client takes its lease to be shorter than the TTL. Default: the library's own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drift_margin: Option<Span>,
    /// The keys that workers lock, `type:id` each. Default: `orders:42` alone.
    #[serde(default = "default_keys")]
    pub keys: Vec<String>,
    /// The simulated time at which a run ends at the latest. Default 60 s.
    #[serde(default = "default_limit")]
    pub limit: Span,
    /// How long, after all faults have healed, a waiter may wait for a key, and a key stay locked, before the audit calls
    /// it stuck. Default: three of the longest TTL.
    #[serde(default, skip_serializing_if = "is_default")]
    pub within: Option<Span>,
    /// The links between processes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub network: Network,
    /// The Redis servers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub redis: Redis,
    /// The lock on etcd.
    #[serde(default, skip_serializing_if = "is_default")]
    pub etcd: Etcd,
    /// The one mistake of all workers' locks, or of the resource: what the simulator must be able to find. Default: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mutant: Option<Mutant>,
    /// The protected resource.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resource: Resource,
    /// Who acquires the lock.
    #[serde(rename = "worker")]
    pub workers: Vec<Worker>,
    /// What goes wrong.
    #[serde(rename = "fault", default, skip_serializing_if = "is_default")]
    pub faults: Vec<Fault>,
    /// What its runs must give.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expect: Expect,
}

impl Schedule {
    /// A schedule of `system` with these workers, no faults, and all else as by default.
    pub fn new(about: &str, system: System, ttl: Span, workers: Vec<Worker>) -> Self {
        Self {
            about: about.into(),
            system,
            seed: 0,
            ttl,
            drift_margin: None,
            keys: default_keys(),
            limit: default_limit(),
            within: None,
            network: Network::default(),
            redis: Redis::default(),
            etcd: Etcd::default(),
            mutant: None,
            resource: Resource::default(),
            workers,
            faults: Vec::new(),
            expect: Expect::default(),
        }
    }

    /// The schedule with this TOML text. `file` is what errors call it.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Invalid`] with the line for what is no TOML, an unknown field or name, and whatever
    /// [`Schedule::validate`] refuses.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScheduleError> {
        Self::parse_with(file, text, &Faults::default())
    }

    /// As [`Schedule::parse`], with the kinds of faults in `faults`, such as one of your own.
    ///
    /// # Errors
    ///
    /// As [`Schedule::parse`].
    pub fn parse_with(file: &str, text: &str, faults: &Faults) -> Result<Self, ScheduleError> {
        let refused = |line, problem| ScheduleError::Invalid { file: file.into(), line, problem };
        let malformed = |error: toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            refused(line_at(text, offset), error.message().to_owned())
        };
        let invalid = |error: Invalid| refused(error.place.line(text), error.problem);
        let mut table = DeTable::parse(text).map_err(malformed)?;
        // Which actions there are is known by `faults` only: the faults are read by themselves.
        let raw = table.get_mut().remove("fault").map(ValueDeserializer::from);
        let mut schedule = Self::deserialize(toml::Deserializer::from(table)).map_err(malformed)?;
        let raw = raw.map(Vec::<RawFault>::deserialize).transpose().map_err(malformed)?;
        for (number, fault) in raw.unwrap_or_default().into_iter().enumerate() {
            let place = Place::top("fault").index(number);
            schedule.faults.push(fault.read(&place, faults).map_err(invalid)?);
        }
        schedule.validate().map_err(invalid)?;
        Ok(schedule)
    }

    /// The schedule in the file at `path`.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Read`] if the file can't be read, else as [`Schedule::parse`].
    pub fn load(path: &Path) -> Result<Self, ScheduleError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(source) => Err(ScheduleError::Read { file, source }),
        }
    }

    /// The names of all processes: workers, lock servers, then the resource.
    pub fn processes(&self) -> Vec<String> {
        let workers = self.workers.iter().map(|worker| worker.name.clone());
        workers.chain(self.servers()).chain([RESOURCE.to_owned()]).collect()
    }

    /// The names of the lock servers: `redis-1` to `redis-N` and `replica-1`, `etcd-1` to `etcd-3`, `zookeeper-1` to
    /// `zookeeper-3`.
    pub fn servers(&self) -> Vec<String> {
        let numbered =
            |prefix: &str, count: u32| (1..=count).map(|n| format!("{prefix}-{n}")).collect::<Vec<_>>();
        match self.system {
            System::Redis | System::Redlock => {
                let mut names = numbered("redis", self.redis.nodes);
                names.extend(self.redis.replica.then(|| REPLICA.to_owned()));
                names
            }
            System::Etcd => numbered("etcd", ENSEMBLE),
            System::ZooKeeper => numbered("zookeeper", ENSEMBLE),
        }
    }

    /// What the history calls the lock server as a whole, where it is several members: faults are aimed at what it does.
    pub fn cluster(&self) -> Option<&'static str> {
        match self.system {
            System::Redis | System::Redlock => None,
            System::Etcd => Some(Kind::Etcd.name()),
            System::ZooKeeper => Some(Kind::ZooKeeper.name()),
        }
    }

    /// What the process called `name` is, or the cluster as a whole.
    pub fn kind_of(&self, name: &str) -> Option<Kind> {
        if self.worker(name).is_some() {
            return Some(Kind::Worker);
        }
        if name == RESOURCE {
            return Some(Kind::Resource);
        }
        let server = match self.system {
            System::Redis | System::Redlock if name == REPLICA => Kind::Replica,
            System::Redis | System::Redlock => Kind::Redis,
            System::Etcd => Kind::Etcd,
            System::ZooKeeper => Kind::ZooKeeper,
        };
        let is_server = self.cluster() == Some(name) || self.servers().iter().any(|known| known == name);
        is_server.then_some(server)
    }

    /// The worker with this name.
    pub fn worker(&self, name: &str) -> Option<&Worker> {
        self.workers.iter().find(|worker| worker.name == name)
    }

    /// The key that this worker locks and writes.
    pub fn key_of<'a>(&'a self, worker: &'a Worker) -> &'a str {
        worker.key.as_deref().or(self.keys.first().map(String::as_str)).unwrap_or_default()
    }

    /// The TTL of this worker's leases.
    pub fn ttl_of(&self, worker: &Worker) -> Span {
        worker.ttl.unwrap_or(self.ttl)
    }

    /// The bound of the verdict `stuck`: see [`Schedule::within`].
    pub fn within(&self) -> Span {
        let longest = self.workers.iter().map(|worker| self.ttl_of(worker)).max();
        self.within.unwrap_or_else(|| longest.unwrap_or(self.ttl).times(3))
    }
}

fn default_keys() -> Vec<String> {
    vec!["orders:42".into()]
}

fn default_limit() -> Span {
    Span::from_secs(60)
}

/// For `skip_serializing_if`.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
