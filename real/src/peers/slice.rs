//! A slice of work for one peer, and its measurements.

use std::time::Duration;

use history::Span;
use serde::{Deserialize, Serialize};

use super::PeerError;

/// A slice of work. Peers in other languages read it as a line of JSON and answer with a [`Slice`].
#[derive(Clone, Debug, Serialize)]
pub struct Job {
    /// The scenario.
    pub scenario: Scenario,
    /// The prefix of the keys, `NAME:0` and so on; different for each slice, so that none finds the locks of
    /// another.
    pub name: String,
    /// The number of operations, for the scenarios of one client; each is a job of a queue in the last two.
    pub operations: u64,
    /// The number of contenders, for the scenarios with several.
    pub contenders: u64,
    /// The number of keys that an operation of [`Scenario::Several`] acquires at once.
    pub keys: u64,
    /// The permits of the semaphore, for [`Scenario::Permit`] and [`Scenario::Crowd`].
    pub permits: u64,
    /// The time for which a lock is held (as precisely as the peer's language allows), and for which its last
    /// holder stays away, in milliseconds, for [`Scenario::Hot`], [`Scenario::Crowd`] and
    /// [`Scenario::Mixed`].
    pub work_ms: u64,
    /// The TTL of a lease.
    pub ttl_ms: u64,
    /// The duration in milliseconds, except for the scenarios with a number of operations; approximate for
    /// [`Scenario::Take`].
    pub millis: u64,
}

/// The number of rounds of a contender of which the first one writes, in [`Scenario::Mixed`].
pub const WRITES: u64 = 10;

/// The number of keys in [`Scenario::Several`].
pub const KEYS: u64 = 4;

/// A scenario to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// One client acquires and releases one key repeatedly.
    Uncontended,
    /// Many contenders for one key, which work while they hold it, and as long again without it.
    Hot,
    /// Many contenders acquire and release, another key each time.
    Space,
    /// Many contenders acquire another key each time, and leave the lease to its TTL: [`Job::takes`] in
    /// total.
    Take,
    /// One client acquires and releases a permit of a semaphore repeatedly.
    Permit,
    /// Many contenders for the permits of one semaphore, which work as in [`Scenario::Hot`].
    Crowd,
    /// One client acquires a lock of readers and a writer for reading, and releases it, repeatedly.
    Read,
    /// Many contenders for one lock of readers and a writer, of whose rounds one in [`WRITES`] writes, and
    /// which work as in [`Scenario::Hot`].
    Mixed,
    /// One client acquires a reentrant lock and acquires it again while it holds it, and releases both
    /// acquires, repeatedly. The two acquires are timed as one, and so are the releases.
    Nested,
    /// One client acquires [`KEYS`] keys at once and releases them, repeatedly.
    Several,
    /// One client stores a job in a queue, claims it and finishes it, repeatedly. The claim is timed as an
    /// acquire, and its end as a release; the rate counts all three steps.
    Claim,
    /// One worker claims and finishes jobs, all of which were stored before.
    Drain,
}

impl Scenario {
    /// Returns true if the requests of one client are timed singly, so that the placement of threads counts.
    pub(super) fn is_single(self) -> bool {
        matches!(
            self,
            Self::Uncontended | Self::Permit | Self::Read | Self::Nested | Self::Several | Self::Claim
        )
    }

    /// Returns true if each acquire and release is timed.
    pub(super) fn is_timed(self) -> bool {
        self.is_single() || matches!(self, Self::Hot | Self::Crowd | Self::Mixed)
    }
}

/// The error that stopped a slice.
pub(super) type Stopped = Box<dyn std::error::Error + Send + Sync>;

/// The measurements.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Slice {
    /// From each call of acquire to the grant, in nanoseconds.
    #[serde(default)]
    pub acquire_ns: Vec<u64>,
    /// From each call of release to its answer.
    #[serde(default)]
    pub release_ns: Vec<u64>,
    /// The number of locks acquired, and released where the scenario says so; or of jobs finished.
    #[serde(default)]
    pub completed: u64,
    /// The duration.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// The error, if any.
    #[serde(default)]
    pub error: Option<String>,
}

impl Slice {
    /// Adds what another contender did at the same time.
    pub(super) fn join(&mut self, other: Self) {
        self.acquire_ns.extend(other.acquire_ns);
        self.release_ns.extend(other.release_ns);
        self.completed += other.completed;
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
    }
}

/// A lock implementation on a server, its own or a shared one.
pub trait Peer {
    /// Returns its name.
    fn name(&self) -> &'static str;

    /// Returns the process that does the work, if it is not this one.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Runs a slice of work.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] if it did not complete.
    fn run(&mut self, job: &Job) -> Result<Slice, PeerError>;
}

/// Roughly the number of leases that a server grants in a millisecond.
const TAKES_PER_MILLI: u64 = 180;

impl Job {
    /// Returns the number of acquires of [`Scenario::Take`], the same for all peers: the server gets slower
    /// with the number of keys, and much slower while it resizes its table of keys.
    pub fn takes(&self) -> u64 {
        (self.millis * TAKES_PER_MILLI).max(1000)
    }

    pub(super) fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }

    pub(super) fn work(&self) -> Duration {
        Duration::from_millis(self.work_ms)
    }

    pub(super) fn lasts(&self) -> Duration {
        Duration::from_millis(self.millis)
    }
}

pub(super) fn nanos(duration: Duration) -> u64 {
    Span(duration).as_nanos()
}
