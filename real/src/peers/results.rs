//! The results of a comparison, as they are stored.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::slice::Scenario;
use crate::lab::{Machine, Software};

/// The amount of work to measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Configuration {
    /// The number of slices of each arm for each peer.
    pub rounds: u64,
    /// The number of acquires and releases in a slice without contention, and of the jobs of a queue.
    pub operations: u64,
    /// The numbers of contenders for one key: an arm each.
    pub contenders: Vec<u64>,
    /// The time for which they hold the lock, in milliseconds.
    pub work_ms: u64,
    /// The duration of a slice with one key.
    pub hot_ms: u64,
    /// The number of tasks that acquire and release at the same time over the key space.
    pub tasks: u64,
    /// The number of tasks that only acquire.
    pub takers: u64,
    /// The duration of a slice over the key space.
    pub space_ms: u64,
    /// The permits of the semaphores.
    pub permits: u64,
}

/// The measurements.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// The command that repeats the run.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// The versions of servers and clients, and the commit.
    pub software: Software,
    /// The amount of work.
    pub configuration: Configuration,
    /// A row for each peer in each arm.
    pub rows: Vec<Row>,
    /// The peers that could not be measured, and why.
    pub missing: Vec<(Cow<'static, str>, String)>,
    /// The peers that were left out.
    pub without: Vec<String>,
}

/// The measurement of one peer in one arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The scenario.
    pub scenario: Scenario,
    /// The number of contenders.
    pub contenders: u64,
    /// The peer.
    pub peer: Cow<'static, str>,
    /// Median of the acquires, in nanoseconds; 0 if they were not timed singly.
    pub acquire_p50_ns: u64,
    /// Their 99th percentile.
    pub acquire_p99_ns: u64,
    /// Median of the releases.
    pub release_p50_ns: u64,
    /// Their 99th percentile.
    pub release_p99_ns: u64,
    /// Locks a second, or jobs.
    pub per_second: f64,
    /// The lower and the upper quartile of the slices' locks a second.
    pub per_second_quartiles: [f64; 2],
    /// Those of the slices' medians of the acquires, in nanoseconds.
    pub acquire_p50_quartiles_ns: [f64; 2],
    /// The number of locks, or of jobs.
    pub completed: u64,
}
