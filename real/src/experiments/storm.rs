//! Experiment 13: a TTL near the duration of the work, and many holders that renew.
//!
//! A renewal is due every third of a TTL. On Redis each holder sends its own, so that a short TTL multiplies
//! the requests by the number of holders; when they take longer than what is left of a lease, it is lost
//! although its holder is well. A lease on etcd or ZooKeeper lives as long as the session of its process,
//! which one message keeps alive for all; but at each renewal each holder reads whether its own key is still
//! there. The renewals are those that the lock library counts. All holders of a run are in one process here,
//! its client and its one core included: what is measured is their limit together with the server's.
//!
//! Source: the lab text, section 10, and "distributed-coordination-part-018", section 16.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use dlock::redis::Waiting;
use dlock::{AnyBackend, Backend, Cap, Lock, LockKey, Options, Runtime, TokioRuntime};
use history::Span;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinSet;

use super::{Experiment, ExperimentError};
use crate::lab::counted::count_done;
use crate::lab::fleet::Fleet;
use crate::lab::load::failures;
use crate::place::Place;
use crate::report::{Section, Table};
use crate::servers::Stage;
use crate::systems::System;
use crate::timer;

/// The timeout of an acquire of a free lock, long enough for all holders to be granted.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(60);

/// The counter of renewals of the lock library.
const RENEWALS: &str = "redis_lease_extend_total";

/// The reason for which leases are lost from some number of holders on.
const ONE_CLIENT: &str = "All holders of a run are tasks of one process with one thread: the numbers are a \
                          limit of this client and its one core together with the servers, which share the \
                          machine with it. Where the client is late, leases are lost although the server has \
                          time.";

/// Experiment 13.
#[derive(Debug)]
pub struct Storm;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    systems: Vec<System>,
    work: Span,
    ttls: Vec<Span>,
    holders: Vec<u32>,
    rounds: u32,
    /// Runs of each cell.
    repeats: u32,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    cells: Vec<Cell>,
}

/// One run of a system with one TTL and number of holders.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cell {
    system: System,
    ttl: Span,
    holders: u32,
    /// Pieces of work that were done before their leases ended.
    done: u32,
    /// Pieces of work whose lease was lost.
    lost: u32,
    /// Acquires that failed.
    failed: u32,
    /// The reasons of failures, with their counts.
    failures: BTreeMap<String, u64>,
    /// Renewals that extended a lease, by the client's counter.
    renewals: u64,
    /// The duration of the run in seconds.
    seconds: f64,
}

/// The outcome of a piece of work.
enum Outcome {
    Done,
    Lost,
    /// The acquire failed, for this reason.
    Failed(String),
}

impl Experiment for Storm {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 13;
    const TITLE: &'static str = "A storm of renewals";
    const QUESTION: &'static str =
        "How many holders can renew before leases are lost, if the TTL is as short as the work?";
    const COMMITTED: &'static str = include_str!("../../experiments/13.toml");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, work, ttls, holders, rounds, repeats } = configuration;
        let is_empty = systems.is_empty() || ttls.is_empty() || holders.is_empty();
        if is_empty || work.0.is_zero() || *rounds == 0 || *repeats == 0 {
            return Err(ExperimentError::Pointless(
                "set systems, work above zero, TTLs, holders, rounds and repeats".to_owned(),
            ));
        }
        let mut cells = Vec::new();
        for &system in systems {
            let stage = Stage::new()?;
            let fleet = Fleet::start(&stage, system)?;
            let place = fleet.place(system);
            let failed = |error: Box<dyn Error + Send + Sync>| {
                ExperimentError::Failed(format!("{}: {error}", system.as_str()))
            };
            for &ttl in ttls {
                for &holders in holders {
                    for repeat in 0..*repeats {
                        cells.push(configuration.cell(&place, ttl, holders, repeat).map_err(failed)?);
                    }
                }
            }
        }
        Ok(Findings { cells })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        let mut section = Section { tables: vec![table(configuration, findings)], ..Section::default() };
        let fewest = configuration.holders.iter().min().copied().unwrap_or_default();
        let few: Vec<_> = findings.cells.iter().filter(|cell| cell.holders == fewest).collect();
        section.expect(
            format!("{fewest} holders lost no lease, whatever the TTL"),
            !few.is_empty() && few.iter().all(|cell| cell.lost == 0 && cell.done > 0),
        );
        section.expect(
            format!("no acquire of {fewest} holders failed"),
            !few.is_empty() && few.iter().all(|cell| cell.failed == 0),
        );
        let sums = findings.sums();
        section.remarks.extend(configuration.systems.iter().filter_map(|system| first(&sums, *system)));
        section.remarks.push(
            "The leases of a process on etcd or ZooKeeper hang on its session, and are lost together: all \
             that its holders have at that time."
                .to_owned(),
        );
        section.remarks.push(ONE_CLIENT.to_owned());
        section.remarks.extend(sums.iter().filter_map(|Sum { cell, .. }| {
            let Cell { system, ttl, holders, .. } = cell;
            failures(
                &format!("{} with {holders} holders and a TTL of {ttl}", system.as_str()),
                &cell.failures,
            )
        }));
        section
    }
}

impl Configuration {
    fn cell(
        &self,
        place: &Place,
        ttl: Span,
        holders: u32,
        repeat: u32,
    ) -> Result<Cell, Box<dyn Error + Send + Sync>> {
        let executor = Builder::new_current_thread().enable_all().build()?;
        // All tasks of the run are on this thread.
        let (cell, renewals) =
            count_done(RENEWALS, || executor.block_on(self.hold(place, ttl, holders, repeat)));
        Ok(Cell { renewals, ..cell? })
    }

    async fn hold(
        &self,
        place: &Place,
        ttl: Span,
        holders: u32,
        repeat: u32,
    ) -> Result<Cell, Box<dyn Error + Send + Sync>> {
        let runtime = TokioRuntime::new(Handle::current());
        let backend = place.backend(ttl.0, Waiting::default(), runtime.clone())?;
        let lock = Lock::new(backend, Options::new(ttl.0))?;
        let begun = runtime.now();
        let mut running = JoinSet::new();
        for holder in 0..holders {
            let key = LockKey::new("storm", &format!("{ttl}-{holders}-{repeat}-{holder}"))?;
            running.spawn(work_often(lock.clone(), key, self.work.0, self.rounds));
        }
        let system = place.system;
        let (done, lost, failed, failures, renewals) = (0, 0, 0, BTreeMap::new(), 0);
        let mut cell = Cell { system, ttl, holders, done, lost, failed, failures, renewals, seconds: 0.0 };
        while let Some(outcomes) = running.join_next().await {
            for outcome in outcomes? {
                match outcome {
                    Outcome::Done => cell.done += 1,
                    Outcome::Lost => cell.lost += 1,
                    Outcome::Failed(reason) => {
                        cell.failed += 1;
                        *cell.failures.entry(reason).or_default() += 1;
                    }
                }
            }
        }
        cell.seconds = runtime.now().saturating_since(begun).as_secs_f64();
        lock.cleaned_up(runtime.now() + ttl.0).await;
        Ok(cell)
    }
}

async fn work_often(
    lock: Lock<AnyBackend<TokioRuntime>>,
    key: LockKey,
    work: Duration,
    rounds: u32,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for _ in 0..rounds {
        let deadline = lock.backend().runtime().now() + ACQUIRE_TIMEOUT;
        let handle = match lock.acquire(&key, deadline).await {
            Ok(handle) => handle,
            Err(error) => {
                outcomes.push(Outcome::Failed(error.to_string()));
                continue;
            }
        };
        let held = handle.while_held(Cap(work * 10), timer::sleep(work)).await;
        outcomes.push(if held.is_ok() { Outcome::Done } else { Outcome::Lost });
        let _ = handle.release().await;
    }
    outcomes
}

/// The runs of one system with one TTL and number of holders.
struct Sum {
    /// Their sums.
    cell: Cell,
    runs: u32,
    /// Runs in which a lease was lost.
    lossy: u32,
}

impl Findings {
    /// Adds up the runs of each cell.
    fn sums(&self) -> Vec<Sum> {
        let mut sums: Vec<Sum> = Vec::new();
        for run in &self.cells {
            let is_same = |sum: &&mut Sum| sum.cell.is_repeated_by(run);
            match sums.iter_mut().find(is_same) {
                Some(sum) => sum.add(run),
                None => sums.push(Sum { cell: run.clone(), runs: 1, lossy: u32::from(run.lost > 0) }),
            }
        }
        sums
    }
}

impl Cell {
    fn is_repeated_by(&self, other: &Self) -> bool {
        (self.system, self.ttl, self.holders) == (other.system, other.ttl, other.holders)
    }
}

impl Sum {
    fn add(&mut self, run: &Cell) {
        let Self { cell, runs, lossy } = self;
        cell.done += run.done;
        cell.lost += run.lost;
        cell.failed += run.failed;
        for (reason, count) in &run.failures {
            *cell.failures.entry(reason.clone()).or_default() += count;
        }
        cell.renewals += run.renewals;
        cell.seconds += run.seconds;
        *runs += 1;
        *lossy += u32::from(run.lost > 0);
    }

    /// Returns the mean duration of a run in seconds.
    fn seconds(&self) -> f64 {
        self.cell.seconds / f64::from(self.runs)
    }

    /// Returns the renewals that are due a second, if each lease is renewed every third of its TTL.
    fn due(&self) -> f64 {
        f64::from(self.cell.holders) * 3.0 / self.cell.ttl.0.as_secs_f64()
    }
}

/// Says with how many holders the first leases were lost, or acquires failed.
fn first(sums: &[Sum], system: System) -> Option<String> {
    let cells = || sums.iter().map(|sum| &sum.cell).filter(|cell| cell.system == system);
    let lossy = cells().filter(|cell| cell.lost + cell.failed > 0);
    let name = system.as_str();
    let Some(cell) = lossy.min_by_key(|cell| (cell.holders, cell.ttl.0)) else {
        let most = cells().max_by_key(|cell| (cell.holders, std::cmp::Reverse(cell.ttl.0)))?;
        return Some(format!(
            "On {name} no lease was lost and no acquire failed, up to {} holders with a TTL of {}.",
            most.holders, most.ttl
        ));
    };
    Some(format!(
        "On {name} with {} holders and a TTL of {}: {} of {} leases were lost, and {} acquires failed.",
        cell.holders,
        cell.ttl,
        cell.lost,
        cell.done + cell.lost,
        cell.failed
    ))
}

fn table(configuration: &Configuration, findings: &Findings) -> Table {
    let caption = format!(
        "Holders that work for {} and renew, {} times each, in {} runs: renewals due a second, if each lease \
         is renewed every third of its TTL, and those that the client counted; pieces of work done under the \
         lease, leases lost, in how many of the runs, acquires that failed, and the duration of a run. On \
         Redlock a renewal is one request to each server. On etcd and ZooKeeper it is a read of the holder's \
         key, beside the messages that keep the session alive.",
        configuration.work, configuration.rounds, configuration.repeats
    );
    let headings =
        ["system", "TTL", "holders", "due/s", "renewals/s", "done", "lost", "in runs", "failed", "s"];
    let mut table = Table::new(caption, &headings);
    for sum in findings.sums() {
        let Sum { cell, runs, lossy } = &sum;
        let renewals = cell.renewals as f64;
        table.row([
            cell.system.as_str().to_owned(),
            cell.ttl.to_string(),
            cell.holders.to_string(),
            format!("{:.0}", sum.due()),
            format!("{:.0}", renewals / cell.seconds.max(f64::MIN_POSITIVE)),
            cell.done.to_string(),
            cell.lost.to_string(),
            format!("{lossy} of {runs}"),
            cell.failed.to_string(),
            format!("{:.1}", sum.seconds()),
        ]);
    }
    table
}
