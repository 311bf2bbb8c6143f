//! Experiment 5: order of arrival compared with order of grants.
//!
//! The offered load exceeds the capacity of the lock, so that a queue builds up. etcd and ZooKeeper keep it
//! on the server, in the order of arrival. Redis keeps none: waiters poll at random times, and the first
//! request after a release is served. Where a release wakes waiters, each client wakes its own in their
//! order: fair among the waiters of one client, random between clients.
//!
//! Source: the lab text, section 10, experiment 5.

use std::collections::BTreeMap;

use history::Span;
use serde::{Deserialize, Serialize};

use super::{Experiment, ExperimentError};
use crate::contend::{Arrivals, Report};
use crate::lab::fleet::Fleet;
use crate::lab::load::{HotKey, failures, millis};
use crate::report::{Axis, Figure, Line, Scale, Section, Table};
use crate::servers::Stage;
use crate::systems::System;

/// The number of grants of a system that the figure shows.
const SHOWN: usize = 150;
/// The accepted overtakings, in a thousand pairs: even with a queue on the server, requests may overtake each
/// other in the network.
const ON_THE_WAY_PER_MILLE: f64 = 10.0;

/// Experiment 5.
#[derive(Debug)]
pub struct Fairness;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    systems: Vec<System>,
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
    #[serde(default)]
    failed: u64,
    /// The reasons of failures, with their counts.
    #[serde(default)]
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
    /// The numbers of the first attempts served, in the order of their grants.
    order: Vec<u64>,
}

impl Experiment for Fairness {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 5;
    const TITLE: &'static str = "Fairness: order of arrival, order of grant";
    const QUESTION: &'static str =
        "In which order are waiters served, and how does it affect the longest waits?";
    const COMMITTED: &'static str = include_str!("../../experiments/5.toml");

    /// Runs the loads one after the other, since they would disturb each other.
    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, contenders, rate, work, lasts, ttl } = configuration;
        if work.0.is_zero() || *rate * work.0.as_secs_f64() <= 1.0 {
            return Err(ExperimentError::Pointless(
                "set a rate above 1 / work: without waiters there is no order to compare".to_owned(),
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
                let (contenders, rate, arrivals) = (*contenders, *rate, Arrivals::Even);
                let load =
                    HotKey { key, contenders, rate, arrivals, patience: None, work, ttl, lasts, polled };
                arms.push(Arm::of(system, polled, &load.offer(system, &fleet)?));
            }
        }
        Ok(Findings { arms })
    }

    fn section(_: &Configuration, findings: &Findings) -> Section {
        let mut section = Section {
            tables: vec![table(findings)],
            figures: order_figures(findings).collect(),
            ..Section::default()
        };
        let queues = || findings.arms.iter().filter(|arm| arm.has_queue());
        section.expect(
            "etcd and ZooKeeper served in the order of arrival, except requests that overtook each other on \
             the way to the server",
            queues().all(|arm| arm.inverted_per_mille() <= ON_THE_WAY_PER_MILLE),
        );
        let polled = || findings.arms.iter().filter(|arm| arm.polls());
        section.expect(
            "polling waiters were served out of order",
            polled().all(|arm| arm.inverted_per_mille() > ON_THE_WAY_PER_MILLE),
        );
        section.expect("there was always a queue", {
            !findings.arms.is_empty() && findings.arms.iter().all(|arm| arm.served > 1 && arm.unserved > 0)
        });
        section.remarks.extend(findings.arms.iter().map(Arm::remark));
        let failed = |arm: &Arm| failures(&arm.name(), &arm.failures);
        section.remarks.extend(findings.arms.iter().filter_map(failed));
        section
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

    /// Returns the number of pairs served in the wrong order, in a thousand.
    fn inverted_per_mille(&self) -> f64 {
        let pairs = self.served as f64 * (self.served as f64 - 1.0) / 2.0;
        1e3 * self.inversions as f64 / pairs.max(1.0)
    }

    fn remark(&self) -> String {
        format!(
            "{}: {:.1} of a thousand pairs were served in the wrong order, and one waiter saw {} later ones \
             served before it. Half of those served waited {:.0} ms, one in a hundred {:.0} ms or more; the \
             longest wait, served or not, was {:.0} ms.",
            self.name(),
            self.inverted_per_mille(),
            self.overtaken_max,
            self.wait_p50_ms,
            self.wait_p99_ms,
            self.wait_all_max_ms,
        )
    }
}

fn table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "Waits in ms, from the time at which an attempt was due, over those served.",
        &["system", "served", "failed", "inversions", "overtaken by", "p50", "p99", "max"],
    );
    for arm in &findings.arms {
        table.row([
            arm.name(),
            arm.served.to_string(),
            arm.failed.to_string(),
            arm.inversions.to_string(),
            arm.overtaken_max.to_string(),
            format!("{:.0}", arm.wait_p50_ms),
            format!("{:.0}", arm.wait_p99_ms),
            format!("{:.0}", arm.wait_max_ms),
        ]);
    }
    table
}

/// Returns a figure for each arm: in one frame their points would lie on each other.
fn order_figures(findings: &Findings) -> impl Iterator<Item = Figure> {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    findings.arms.iter().map(move |arm| {
        let points =
            arm.order.iter().zip(1_u32..).map(|(arrival, grant)| (f64::from(grant), *arrival as f64 + 1.0));
        Figure {
            name: format!("experiment-5-order-{}", arm.name().replace(", ", "-")),
            caption: format!(
                "{}: order of arrival by order of grant. A queue is a straight line; a point above it has \
                 overtaken those below.",
                arm.name()
            ),
            x: axis("order of grant"),
            y: axis("order of arrival"),
            lines: vec![Line { name: arm.name(), points: points.collect() }],
        }
    })
}
