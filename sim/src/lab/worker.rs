//! The workload: who acquires the lock, and what they do with it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::default::is_default;
use crate::names::names;
use crate::span::Span;

/// One worker: it acquires the lock, reads, works, checks its lease, writes to the resource and releases,
/// `rounds` times. With `mode = "cas"` it does without the lock: it reads, works and writes on the
/// condition that nothing has been written since, and begins anew if something has.
///
/// Every field but the name has a default, the one that [`Worker::new`] gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Worker {
    /// Its name: lower-case letters, digits and dashes, unlike that of any server.
    pub name: String,
    /// How it keeps others from overwriting what they have not seen. Default: by the lock.
    #[serde(skip_serializing_if = "is_default")]
    pub mode: WorkerMode,
    /// How often it reads and writes in a round at most. Needs `mode = "cas"`. Default 16.
    #[serde(skip_serializing_if = "is_default")]
    pub attempts: Option<u32>,
    /// When it starts, in simulated time. Default: at once.
    #[serde(skip_serializing_if = "is_default")]
    pub starts: Span,
    /// How many times it acquires the lock. Default 1.
    pub rounds: u32,
    /// The key that it locks and writes, one of the schedule's. Default: the schedule's first.
    #[serde(skip_serializing_if = "is_default")]
    pub key: Option<String>,
    /// How long it waits between two rounds. Default: not at all.
    #[serde(skip_serializing_if = "is_default")]
    pub think: Span,
    /// How long it waits for the lock before it gives up. Default 30 s.
    pub deadline: Span,
    /// How long it works inside its critical section, before it writes. Default 10 ms.
    pub work: Span,
    /// The TTL of its leases, if it differs from the schedule's.
    #[serde(skip_serializing_if = "is_default")]
    pub ttl: Option<Span>,
    /// Whether it looks at its lease before it writes, and leaves the write out if the lease is over.
    /// Default true.
    pub check: bool,
    /// How it reads the resource before it works. Default: not at all.
    #[serde(skip_serializing_if = "is_default")]
    pub read: ReadMode,
    /// Whether its lease is renewed every third of the TTL. Default false.
    #[serde(skip_serializing_if = "is_default")]
    pub renew: bool,
    /// The longest time for which its lease is renewed, if that is bounded. Needs `renew`.
    #[serde(skip_serializing_if = "is_default")]
    pub renew_cap: Option<Span>,
    /// How it releases. Default: by the script that deletes only what it owns.
    #[serde(skip_serializing_if = "is_default")]
    pub release: ReleaseMode,
    /// How many writes it sends in a round. Default 1; more than one carry a sequence number each.
    pub writes: u32,
    /// Whether it sends a write again if its answer is lost. Default true.
    pub retry_put: bool,
    /// In round i its acquire future is dropped when it has been pending for the `cancel_at[i]`-th time;
    /// the round ends there. An acquire that is pending less often is not cancelled, and rounds beyond the
    /// list are not either.
    #[serde(skip_serializing_if = "is_default")]
    pub cancel_at: Vec<u32>,
}

/// What a worker does in its rounds: the name of a workload. By default `lock`: it holds the lock, and
/// sends its fencing token with each write. `cas` is compare and set: each write names the version that was
/// read, and the resource compares. `read` only reads the resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerMode(Cow<'static, str>);

impl WorkerMode {
    /// The workload called `name`. A schedule with an unknown one is not valid.
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

names! {
    /// How a worker reads the resource before it works.
    #[derive(Default)]
    pub enum ReadMode as "way to read" {
        /// It does not read.
        #[default]
        None = "none",
        /// It reads without its token: the resource does not learn that a newer holder exists.
        Plain = "plain",
        /// It reads with its token, which the resource claims: older holders are refused from then on.
        Fenced = "fenced",
    }
}

names! {
    /// How a worker releases its lock.
    #[derive(Default)]
    pub enum ReleaseMode as "way to release" {
        /// One script compares the owner and deletes.
        #[default]
        Script = "script",
        /// A GET, then a DEL if the owner was its own: a mistake that many libraries made.
        GetDel = "get-del",
        /// It leaves the key to its TTL.
        None = "none",
    }
}

impl Worker {
    /// A worker with this name, all else as by default.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the first option that concerns the lock and is not as by default, if one is.
    pub(super) fn option_of_locks(&self) -> Option<&'static str> {
        let plain = Self::default();
        let set = [
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
    /// A worker without a name, which no schedule may hold: give it one.
    fn default() -> Self {
        Self {
            name: String::new(),
            mode: WorkerMode::default(),
            attempts: None,
            starts: Span::ZERO,
            rounds: 1,
            key: None,
            think: Span::ZERO,
            deadline: Span::from_secs(30),
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
