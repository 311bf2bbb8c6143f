//! The options of a worker.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use sim::Span;

use super::default::is_default;

/// One worker: it acquires the lock, reads, works, checks its lease, writes to the resource and releases,
/// `rounds` times. With `mode = "cas"` it uses no lock: it reads, works and writes on the condition that
/// nothing has been written since, and starts again if something has.
///
/// Every field but the name has a default, which [`Worker::new`] sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Worker {
    /// Its name: lower-case letters, digits and dashes, unlike that of any server.
    pub name: String,
    /// Its workload, which determines how it avoids lost updates. Default: `lock`.
    #[serde(skip_serializing_if = "is_default")]
    pub mode: WorkerMode,
    /// Largest number of attempts in a round, each a read and a write. Needs `mode = "cas"`. Default 16.
    #[serde(skip_serializing_if = "is_default")]
    pub attempts: Option<u32>,
    /// Its start, in simulated time. Default: at once.
    #[serde(skip_serializing_if = "is_default")]
    pub starts: Span,
    /// Number of rounds. Default 1.
    pub rounds: u32,
    /// The key that it locks and writes, one of the schedule's. Default: the schedule's first.
    #[serde(skip_serializing_if = "is_default")]
    pub key: Option<String>,
    /// The keys that it locks together, in the order in which it names them. Needs `mode = "several"`.
    /// Default: all of the schedule's, in their order.
    #[serde(skip_serializing_if = "is_default")]
    pub keys: Vec<String>,
    /// The number of sections of a round, each inside the one before. Needs `mode = "reentrant"`. Default 2.
    #[serde(skip_serializing_if = "is_default")]
    pub depth: Option<u32>,
    /// The number of its first computations that fail, or of its first runs of jobs. Needs
    /// `mode = "single_flight"` or `"jobs"`. Default: none.
    #[serde(skip_serializing_if = "is_default")]
    pub fails: Option<u32>,
    /// The number of jobs that it stores before its rounds. Needs `mode = "jobs"`. Default: none.
    #[serde(skip_serializing_if = "is_default")]
    pub jobs: Option<u32>,
    /// Time between two rounds. Default: none.
    #[serde(skip_serializing_if = "is_default")]
    pub think: Span,
    /// True if it acquires the lock for reading, and reads the resource with its token where others write.
    /// Needs the schedule's `readers = true`. Default false.
    #[serde(skip_serializing_if = "is_default")]
    pub shared: bool,
    /// Timeout of an acquire, and of an answer of the resource with all retries. Default 30 s.
    pub deadline: Span,
    /// Longest wait between two attempts of an acquire, the same for all: no backoff. Default: the library's
    /// backoff.
    #[serde(skip_serializing_if = "is_default")]
    pub retry_every: Option<Span>,
    /// Time of work inside its critical section, before it writes. Default 10 ms.
    pub work: Span,
    /// The TTL of its leases, if it differs from the schedule's.
    #[serde(skip_serializing_if = "is_default")]
    pub ttl: Option<Span>,
    /// True if it checks its lease before it writes, and does not write if the lease is over. Default true.
    pub check: bool,
    /// Its read of the resource before it works. Default: none.
    #[serde(skip_serializing_if = "is_default")]
    pub read: ReadMode,
    /// True if its lease is renewed every third of the TTL. Default false.
    #[serde(skip_serializing_if = "is_default")]
    pub renew: bool,
    /// Longest time for which its lease is renewed. Needs `renew`. Default: longer than any run.
    #[serde(skip_serializing_if = "is_default")]
    pub renew_cap: Option<Span>,
    /// Its release. Default: a script that deletes the lock only if the worker owns it.
    #[serde(skip_serializing_if = "is_default")]
    pub release: ReleaseMode,
    /// Number of writes in a round, of a reader's reads after its work, or of the parts of a job. Default 1;
    /// if there are several, each carries a sequence number.
    pub writes: u32,
    /// True if it retries a write whose answer is lost. Default true.
    pub retry_put: bool,
    /// In round i its acquire future is dropped when it has been pending for the `cancel_at[i]`-th time; this
    /// ends the round. An acquire that is pending less often is not cancelled, and neither are rounds beyond
    /// the list.
    #[serde(skip_serializing_if = "is_default")]
    pub cancel_at: Vec<u32>,
}

/// The name of a worker's workload. `lock`, the default, holds the lock and sends its fencing token with
/// each write. `cas` is compare and set: each write names the version that was read, and the resource
/// compares. `read` only reads the resource. `several` locks several keys together, and works and writes
/// under each of them in turn. `election` campaigns, and works as the leader: it always renews, and sends its
/// term with each write. `observe` learns who leads, one term a round.
/// `reentrant` acquires its key again inside its critical section, and writes in each section before and
/// after the one inside it. `upgrade` reads under a lease for reading, asks for one for writing in its
/// place, which the library refuses, and writes under a second lease. `single_flight` gets a result that is
/// newer than the one in the resource, from another worker or by computing it under the lock. `cron` fires
/// by its own clock, and commits each tick that is due. `jobs` stores jobs in a queue, claims one job a
/// round, and commits it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerMode(Cow<'static, str>);

/// The workload that locks several keys together.
pub(super) const SEVERAL: &str = "several";

/// The workload that leads.
pub(super) const ELECTION: &str = "election";

/// The workload that observes who leads.
pub(super) const OBSERVE: &str = "observe";
/// The workload whose sections nest.
pub(super) const REENTRANT: &str = "reentrant";

/// The workload of a reader that wants to write.
pub(super) const UPGRADE: &str = "upgrade";

/// The workload that shares the results of computations.
pub(super) const SINGLE_FLIGHT: &str = "single_flight";
/// The workload that fires by a clock.
pub(super) const CRON: &str = "cron";

/// The workload of a job queue.
pub(super) const JOBS: &str = "jobs";

impl WorkerMode {
    /// Names a workload. A schedule with an unknown one is not valid.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Default for WorkerMode {
    fn default() -> Self {
        Self::new("lock")
    }
}

history::names! {
    /// A worker's read of the resource before it works.
    #[derive(Default)]
    pub enum ReadMode as "read mode" {
        /// It does not read.
        #[default]
        None = "none",
        /// It reads without its token: the resource does not learn that a newer holder exists.
        Plain = "plain",
        /// It reads with its token, which the resource claims: older holders are refused from then on.
        Fenced = "fenced",
    }
}

history::names! {
    /// A worker's release of its lock.
    #[derive(Default)]
    pub enum ReleaseMode as "release mode" {
        /// One script compares the owner and deletes.
        #[default]
        Script = "script",
        /// A GET, then a DEL if the owner is its own: a mistake of many libraries.
        GetDel = "get-del",
        /// It leaves the key to its TTL.
        None = "none",
    }
}

impl Worker {
    /// Creates a worker with this name, and defaults for all else.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the first option of a workload other than the worker's that differs from its default, with the
    /// name of that workload.
    pub(super) fn option_of_others(&self) -> Option<(&'static str, &'static str)> {
        let own = [
            ("attempts", "cas", self.attempts.is_some()),
            ("keys", SEVERAL, !self.keys.is_empty()),
            ("depth", REENTRANT, self.depth.is_some()),
            ("fails", SINGLE_FLIGHT, self.fails.is_some() && !self.runs_jobs()),
            ("jobs", JOBS, self.jobs.is_some()),
        ];
        let mut others = own.into_iter().filter(|(_, mode, is_set)| *is_set && *mode != self.mode.name());
        others.next().map(|(field, mode, _)| (field, mode))
    }

    /// Returns true if it locks several keys together.
    pub fn locks_several(&self) -> bool {
        self.mode.name() == SEVERAL
    }

    /// Returns true if it campaigns and leads.
    pub fn leads(&self) -> bool {
        self.mode.name() == ELECTION
    }

    /// Returns true if it observes who leads.
    pub fn observes(&self) -> bool {
        self.mode.name() == OBSERVE
    }

    /// Returns true if it shares the results of computations.
    pub fn flies(&self) -> bool {
        self.mode.name() == SINGLE_FLIGHT
    }

    /// Returns the number of its nested sections, if its workload nests them.
    pub fn nests(&self) -> Option<u32> {
        (self.mode.name() == REENTRANT).then(|| self.depth.unwrap_or(2))
    }

    /// Returns true if it reads, and wants to write then.
    pub fn upgrades(&self) -> bool {
        self.mode.name() == UPGRADE
    }

    /// Returns true if it fires by its clock.
    pub fn fires(&self) -> bool {
        self.mode.name() == CRON
    }

    /// Returns true if it runs the jobs of a queue.
    pub fn runs_jobs(&self) -> bool {
        self.mode.name() == JOBS
    }

    /// Returns the first option of the lock that differs from its default, if any.
    pub(super) fn option_of_locks(&self) -> Option<&'static str> {
        let plain = Self::default();
        let set = [
            ("shared", self.shared != plain.shared),
            ("retry_every", self.retry_every != plain.retry_every),
            ("ttl", self.ttl != plain.ttl),
            ("check", self.check != plain.check),
            ("read", self.read != plain.read),
            ("renew", self.renew != plain.renew),
            ("renew_cap", self.renew_cap != plain.renew_cap),
            ("release", self.release != plain.release),
            ("writes", self.writes != plain.writes),
            ("cancel_at", self.cancel_at != plain.cancel_at),
        ];
        set.into_iter().find_map(|(field, is_set)| is_set.then_some(field))
    }
}

impl Default for Worker {
    /// Creates a worker without a name. Give it one: a schedule with a nameless worker is not valid.
    fn default() -> Self {
        Self {
            name: String::new(),
            mode: WorkerMode::default(),
            attempts: None,
            starts: Span::ZERO,
            rounds: 1,
            key: None,
            keys: Vec::new(),
            depth: None,
            fails: None,
            jobs: None,
            think: Span::ZERO,
            shared: false,
            deadline: Span::from_secs(30),
            retry_every: None,
            work: Span::from_millis(10),
            ttl: None,
            check: true,
            read: ReadMode::None,
            renew: false,
            renew_cap: None,
            release: ReleaseMode::Script,
            writes: 1,
            retry_put: true,
            cancel_at: Vec::new(),
        }
    }
}
