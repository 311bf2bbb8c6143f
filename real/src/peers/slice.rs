//! One slice of work of one peer: what it is to do, and what it measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::PeerError;

/// What a peer does for a while. Peers in other languages get it as a line of JSON, and answer with a [`Slice`].
#[derive(Clone, Debug, Serialize)]
pub struct Job {
    /// What is done.
    pub scenario: Scenario,
    /// What the keys are called, `NAME:0` and so on: another name for each slice, so that none inherits a lock.
    pub name: String,
    /// How many times, for [`Scenario::Uncontended`].
    pub operations: u64,
    /// How many do it at the same time, for the other scenarios.
    pub contenders: u64,
    /// How long a lock is held, as exactly as the peer's language can, and how long its last holder stays away, for
    /// [`Scenario::Hot`].
    pub work_ms: u64,
    /// The TTL of a lease.
    pub ttl_ms: u64,
    /// For how long, but for [`Scenario::Uncontended`]; about so long for [`Scenario::Take`].
    pub millis: u64,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// One client acquires and releases one key, again and again.
    Uncontended,
    /// Many want one key, work while they hold it, and work as long without it before they come back.
    Hot,
    /// Many acquire and release, each time another key.
    Space,
    /// Many acquire, each time another key, and leave the lease to its TTL: [`Job::takes`] in all.
    Take,
}

/// What came of it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Slice {
    /// From each call of acquire to the grant, in nanoseconds.
    #[serde(default)]
    pub acquire_ns: Vec<u64>,
    /// From each call of release to its answer.
    #[serde(default)]
    pub release_ns: Vec<u64>,
    /// How many locks were acquired, and released if that was to be.
    #[serde(default)]
    pub completed: u64,
    /// How long that took.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// What went wrong.
    #[serde(default)]
    pub error: Option<String>,
}

/// A way to lock, with a server of its own or a shared one.
pub trait Peer {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// The process that does the work, if it is not this one.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Does a slice of work.
    ///
    /// # Errors
    ///
    /// [`PeerError::Failed`] if it did not get through.
    fn run(&mut self, job: &Job) -> Result<Slice, PeerError>;
}

/// About as many leases as a server gives in a millisecond.
const TAKES_PER_MILLI: u64 = 180;

impl Job {
    /// How many acquires [`Scenario::Take`] has, for all peers alike: the server takes longer over a key the more there are,
    /// and much longer while a table of its keys grows.
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
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
