//! Experiment 5: order of arrival compared with order of grants.
//!
//! Attempts come at random times, at a rate that every system serves: some wait, and the queue does not grow.
//! Beyond the capacity every wait would grow with the duration of the run. etcd and ZooKeeper keep the queue
//! on the server, in the order of arrival. Redis keeps none: waiters poll at random times, and the first
//! request after a release is served. Where a release wakes waiters, each client wakes its own in their
//! order: fair among the waiters of one client, random between clients.
//!
//! Source: the lab text, section 10, experiment 5.

mod section;

use std::collections::BTreeMap;

use history::Span;
use serde::{Deserialize, Serialize};

use super::{Experiment, ExperimentError};
use crate::contend::{Arrivals, Report};
use crate::lab::fleet::Fleet;
use crate::lab::load::{HotKey, millis};
use crate::report::Section;
use crate::servers::Stage;
use crate::systems::System;

/// The number of grants of a system that the figure shows.
const SHOWN: usize = 150;

/// Experiment 5.
#[derive(Debug)]
pub struct Fairness;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    systems: Vec<System>,
    /// Draws the arrivals.
    seed: u64,
    contenders: u64,
    rate: f64,
    work: Span,
    lasts: Span,
    ttl: Span,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    arms: Vec<Arm>,
}

/// One system and one kind of waiting.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Arm {
    system: System,
    /// Redis with polling alone, without wake-ups.
    polled: bool,
    served: u64,
    /// Attempts not served by the end.
    unserved: u64,
    failed: u64,
    /// The reasons of failures, with their counts.
    failures: BTreeMap<String, u64>,
    /// Pairs in which the later attempt was served first.
    inversions: u64,
    /// The largest number of later attempts served before one earlier attempt.
    overtaken_max: u64,
    /// Over attempts served, in milliseconds.
    wait_p50_ms: f64,
    wait_p99_ms: f64,
    wait_max_ms: f64,
    /// Over all attempts, unserved ones included.
    wait_all_max_ms: f64,
    /// The same of other quantiles.
    all: Waits,
    /// The numbers of the first attempts served, in the order of their grants.
    order: Vec<u64>,
}

/// The waits of all attempts of an arm, in milliseconds; of those not served, until the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waits {
    /// The number of attempts.
    offered: u64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
}

impl Experiment for Fairness {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 5;
    const TITLE: &'static str = "Fairness: order of arrival, order of grant";
    const QUESTION: &'static str =
        "In which order are waiters served, and how does it affect the longest waits?";
    const COMMITTED: &'static str = include_str!("../../../experiments/5.toml");

    /// Runs the loads one after the other, since they would disturb each other.
    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, seed, contenders, rate, work, lasts, ttl } = configuration;
        if work.0.is_zero() || *rate * work.0.as_secs_f64() >= 1.0 {
            return Err(ExperimentError::Pointless(
                "set work above zero and a rate below 1 / work: beyond it waits grow as long as the run lasts"
                    .to_owned(),
            ));
        }
        let mut arms = Vec::new();
        for &system in systems {
            let stage = Stage::new()?;
            let fleet = Fleet::start(&stage, system)?;
            let ways: &[bool] = if system == System::Redis { &[true, false] } else { &[false] };
            for &polled in ways {
                let key = if polled { "polled" } else { "called" };
                let (work, ttl, lasts) = (*work, *ttl, *lasts);
                let (contenders, rate, arrivals) = (*contenders, *rate, Arrivals::Random { seed: *seed });
                let load =
                    HotKey { key, contenders, rate, arrivals, patience: None, work, ttl, lasts, polled };
                arms.push(Arm::of(system, polled, &load.offer(system, &fleet)?));
            }
        }
        Ok(Findings { arms })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        section::section(configuration, findings)
    }
}

impl Arm {
    fn of(system: System, polled: bool, report: &Report) -> Self {
        Self {
            system,
            polled,
            served: report.served,
            unserved: report.unserved,
            failed: report.failed,
            failures: report.failures.clone(),
            inversions: report.fairness.inversions,
            overtaken_max: report.fairness.overtaken_max,
            wait_p50_ms: millis(&report.acquire_served, 0.5),
            wait_p99_ms: millis(&report.acquire_served, 0.99),
            wait_max_ms: millis(&report.acquire_served, 1.0),
            wait_all_max_ms: millis(&report.acquire_all, 1.0),
            all: Waits {
                offered: report.offered,
                p50_ms: millis(&report.acquire_all, 0.5),
                p99_ms: millis(&report.acquire_all, 0.99),
                p999_ms: millis(&report.acquire_all, 0.999),
            },
            order: report.grants.iter().map(|(attempt, _)| *attempt).take(SHOWN).collect(),
        }
    }

    fn name(&self) -> String {
        match (self.system, self.polled) {
            (System::Redis, true) => "redis, polling".to_owned(),
            (System::Redis, false) => "redis, called".to_owned(),
            (system, _) => system.as_str().to_owned(),
        }
    }

    /// Returns whether the server keeps a queue.
    fn has_queue(&self) -> bool {
        matches!(self.system, System::Etcd | System::Zookeeper)
    }

    /// Returns whether waiters poll.
    fn polls(&self) -> bool {
        self.polled || self.system == System::Redlock
    }

    /// Returns how often, in a thousand grants, a later attempt was served before an earlier one.
    fn overtakings_per_thousand(&self) -> f64 {
        1e3 * self.inversions as f64 / self.served.max(1) as f64
    }
}
