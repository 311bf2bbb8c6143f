//! Experiment 10: the price of what a lock needs to be right: a disk that is written before the answer,
//! further members, and a resource that checks the token.
//!
//! A Redis that loses its last second loses locks and counts its tokens anew; a majority on disks does not.
//! This experiment measures the other side. The locks are `dlock`'s, but for `WAIT`, which `dlock` does not
//! send (an acknowledged replica is not a majority, and may still lose the failover): there the commands of a
//! lock are sent by themselves, with WAIT after each and without. The check is measured at the resource of
//! this project (`check.rs`), and in PostgreSQL, in a transaction of the user (`updates.rs`).
//!
//! Source: the lab text, sections 5 and 10.

mod check;
mod locks;
mod section;
mod updates;
mod wait;

use history::Span;
use serde::{Deserialize, Serialize};

use self::check::Checked;
use self::updates::Updated;
use super::{Experiment, ExperimentError};
use crate::lab::statistics::quantile;
use crate::place::Place;
use crate::report::Section;
use crate::servers::{EtcdCluster, Persistence, Redis, Stage, ZooKeeper, ZooKeeperEnsemble};
use crate::systems::System;

/// Experiment 10.
#[derive(Debug)]
pub struct Durability;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    ttl: Span,
    operations: u32,
    tasks: u32,
    lasts: Span,
    writes: u32,
    rounds: u32,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    locks: Vec<Measured>,
    writes: Vec<Checked>,
    updates: Vec<Updated>,
}

/// A kind of servers, measured.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    system: System,
    setting: Setting,
    /// Latency of an acquire by one client, in milliseconds.
    p50_ms: f64,
    p99_ms: f64,
    /// Acquires, each with its release, that one client made a second.
    alone_per_second: f64,
    /// Those that all clients made a second.
    together_per_second: f64,
}

/// The disks and members that the servers of a lock wait for before they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
enum Setting {
    #[strum(serialize = "no disk")]
    NoDisk,
    #[strum(serialize = "fsync each second")]
    EverySecond,
    #[strum(serialize = "fsync each write")]
    EachWrite,
    #[strum(serialize = "SET, DEL; a replica")]
    Replica,
    #[strum(serialize = "the same, WAIT 1")]
    Wait,
    #[strum(serialize = "1 member")]
    One,
    #[strum(serialize = "3 members")]
    Three,
    #[strum(serialize = "5 members")]
    Five,
}

/// The latencies of a client, and the numbers of sections.
struct Times {
    acquires_ms: Vec<f64>,
    alone_per_second: f64,
    together_per_second: f64,
}

impl Experiment for Durability {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 10;
    const TITLE: &'static str = "The price of a disk, of members, and of the check";
    const QUESTION: &'static str = "What does an acquire cost if the servers write to disks, or wait for each \
         other, before they answer, and what does a write cost if the resource checks its token?";
    const COMMITTED: &'static str = include_str!("../../../experiments/10.toml");

    /// Measures one kind of servers after the other, each alone on the machine.
    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { operations, tasks, writes, rounds, lasts, .. } = configuration;
        if [operations, tasks, writes, rounds].contains(&&0) || lasts.0.is_zero() {
            return Err(ExperimentError::Pointless(
                "operations, tasks, lasts, writes and rounds must each be above zero".to_owned(),
            ));
        }
        let mut locks = redis(configuration)?;
        locks.extend(wait::measure(configuration)?);
        locks.extend(etcd(configuration)?);
        locks.extend(zookeeper(configuration)?);
        let (writes, updates) = (check::measure(configuration)?, updates::measure(configuration)?);
        Ok(Findings { locks, writes, updates })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        section::section(configuration, findings)
    }
}

impl Measured {
    fn of(system: System, setting: Setting, times: &Times) -> Self {
        let at = |share| quantile(&times.acquires_ms, share).unwrap_or_default();
        Self {
            system,
            setting,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            alone_per_second: times.alone_per_second,
            together_per_second: times.together_per_second,
        }
    }
}

fn measured(
    configuration: &Configuration,
    system: System,
    setting: Setting,
    addresses: Vec<String>,
) -> Result<Measured, ExperimentError> {
    let times = locks::measure(configuration, &Place::new(system, addresses))
        .map_err(|error| ExperimentError::Failed(format!("{}: {error}", system.as_str())))?;
    Ok(Measured::of(system, setting, &times))
}

fn redis(configuration: &Configuration) -> Result<Vec<Measured>, ExperimentError> {
    let settings = [
        (Setting::NoDisk, Persistence::None),
        (Setting::EverySecond, Persistence::EverySecond),
        (Setting::EachWrite, Persistence::Always),
    ];
    let one = |(setting, persistence)| {
        let stage = Stage::new()?;
        let server = Redis::start(&stage, "redis", persistence)?;
        measured(configuration, System::Redis, setting, vec![server.address()])
    };
    settings.into_iter().map(one).collect()
}

fn etcd(configuration: &Configuration) -> Result<Vec<Measured>, ExperimentError> {
    let stage = Stage::new()?;
    let one = EtcdCluster::start_one(&stage)?;
    let alone = measured(configuration, System::Etcd, Setting::One, one.addresses())?;
    drop(one);
    let three = EtcdCluster::start(&stage)?;
    Ok(vec![alone, measured(configuration, System::Etcd, Setting::Three, three.addresses())?])
}

fn zookeeper(configuration: &Configuration) -> Result<Vec<Measured>, ExperimentError> {
    let stage = Stage::new()?;
    let one = ZooKeeper::start(&stage)?;
    let mut all = vec![measured(configuration, System::Zookeeper, Setting::One, vec![one.address()])?];
    drop(one);
    for (setting, members) in [(Setting::Three, 3), (Setting::Five, 5)] {
        let ensemble = ZooKeeperEnsemble::start_of(&stage, members)?;
        all.push(measured(configuration, System::Zookeeper, setting, ensemble.addresses())?);
    }
    Ok(all)
}
