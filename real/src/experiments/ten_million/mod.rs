//! Experiment 7: the cost of a lock for every account, and the reclaiming of expired locks.
//!
//! On Redis (`redis.rs`): the memory of a lock, with a fence counter for each lock and with shared counters;
//! and the time from the end of a lease until its memory is reclaimed. Redis removes an expired key when a
//! client reads it (lazily) and by sampling in the background (actively); until then the key counts in
//! `dbsize` and `used_memory`. On etcd (`etcd.rs`): leases and keys, as many as its memory holds; the time
//! until ended leases are removed, and the growth of the database, which keeps all revisions until it is
//! compacted.
//!
//! Source: the lab text, section 10, experiment 7.

mod etcd;
mod gauge;
mod redis;
mod section;

use history::Span;
use serde::{Deserialize, Serialize};

use self::etcd::{Expiry, Growth, Held};
use self::redis::{Curve, Memory};
use super::{Experiment, ExperimentError};
use crate::fill::{Counters, Way};
use crate::lab::Machine;
use crate::report::Section;

/// Experiment 7.
#[derive(Debug)]
pub struct TenMillion;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    seed: u64,
    keys: u64,
    shards: u64,
    ttl: Span,
    expiry_ttl: Span,
    every: Span,
    expiry_timeout: Span,
    /// The most locks that the etcd is filled with, and the locks between two samples of its memory.
    etcd_keys: u64,
    etcd_every: u64,
    /// The memory of each member, in bytes, at which the fill ends.
    etcd_member_bytes: u64,
    /// The locks whose expiry is measured, and the time from the start of their fill until all leases end.
    etcd_expiry_keys: u64,
    etcd_expiry_ttl: Span,
    etcd_rounds: u64,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    memory: Vec<Memory>,
    expiry: Vec<Curve>,
    etcd: Vec<Held>,
    etcd_expiry: Expiry,
    growth: Growth,
}

impl Experiment for TenMillion {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 7;
    const TITLE: &'static str = "Ten million locks";
    const QUESTION: &'static str =
        "What does a lock cost its server, and how long does it go on costing after it has expired?";
    const COMMITTED: &'static str = include_str!("../../../experiments/7.toml");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { keys, shards, etcd_keys, etcd_every, etcd_expiry_keys, .. } = *configuration;
        let Configuration { etcd_member_bytes, etcd_expiry_ttl, etcd_rounds, .. } = *configuration;
        let numbers = [keys, shards, etcd_keys, etcd_every, etcd_member_bytes, etcd_expiry_keys, etcd_rounds];
        if numbers.contains(&0) || configuration.every.0.is_zero() || etcd_expiry_ttl.0.is_zero() {
            let help = "set keys, shards, etcd_keys, etcd_every, etcd_member_bytes, etcd_expiry_keys, \
                        etcd_expiry_ttl, etcd_rounds and every above zero";
            return Err(ExperimentError::Pointless(help.to_owned()));
        }
        let (members, free) = (etcd_member_bytes.saturating_mul(3), Machine::available_bytes());
        if free.is_some_and(|free| free < members) {
            let help = format!(
                "set etcd_member_bytes to less than a third of {} bytes, which this machine has available",
                free.unwrap_or(0)
            );
            return Err(ExperimentError::Pointless(help));
        }
        let arms = [
            (Counters::None, Way::Commands),
            (Counters::Key, Way::Commands),
            (Counters::Shards(configuration.shards), Way::Commands),
            (Counters::Key, Way::Lock),
            (Counters::Slots, Way::Lock),
        ];
        let memory = arms.into_iter().map(|(counters, way)| redis::memory(configuration, counters, way));
        let memory = memory.collect::<Result<_, _>>()?;
        let expiry = [true, false].into_iter().map(|active| redis::expire(configuration, active));
        let expiry = expiry.collect::<Result<_, _>>()?;
        Ok(Findings {
            memory,
            expiry,
            etcd: etcd::hold(configuration)?,
            etcd_expiry: etcd::expire(configuration)?,
            growth: etcd::grow(configuration)?,
        })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        section::section(configuration, findings)
    }
}
