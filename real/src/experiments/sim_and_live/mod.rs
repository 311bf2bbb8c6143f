//! Experiment 9: the same lock in the simulator and on live servers.
//!
//! Each scenario exists twice, with the same durations: as a schedule that `sim replay` runs with many seeds,
//! and as processes on live servers. Both are judged by the same audit. The outcome of a run is a set of
//! verdicts; the shares of these sets are compared.

mod scenario;
mod simulator;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use history::{Span, VerdictKind};
use resource::Fencing;
use serde::{Deserialize, Serialize};

use self::scenario::{Plot, Scenario};
use self::simulator::Simulator;
use super::{Experiment, ExperimentError};
use crate::lab::fleet::Fleet;
use crate::lab::parallel::in_parallel;
use crate::report::{Section, Table};
use crate::servers::Stage;
use crate::systems::System;

/// The largest difference allowed between the shares of one set of verdicts.
const TOLERANCE: f64 = 0.25;
/// Simulations at the same time.
const SIMULATIONS_AT_ONCE: usize = 4;

/// Experiment 9.
#[derive(Debug)]
pub struct SimAndLive;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    systems: Vec<System>,
    scenarios: Vec<Scenario>,
    ttl: Span,
    runs: u32,
    seeds: u32,
    at_once: usize,
    /// The path of the simulator; by default it is beside this program.
    #[serde(skip_serializing_if = "Option::is_none")]
    sim: Option<PathBuf>,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    cells: Vec<Cell>,
}

/// One scenario on one system, in one arm: the count of runs for each set of verdicts (`overlap stale_write`,
/// `none`).
#[derive(Debug, Serialize, Deserialize)]
struct Cell {
    scenario: Scenario,
    system: System,
    fence: Fencing,
    simulated: BTreeMap<String, u32>,
    live: BTreeMap<String, u32>,
}

impl Experiment for SimAndLive {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 9;
    const TITLE: &'static str = "Simulated and live";
    const QUESTION: &'static str =
        "Does the same lock come to the same verdicts under the simulator and on live servers?";
    const COMMITTED: &'static str = include_str!("../../../experiments/9.toml");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, scenarios, runs, seeds, at_once, sim, ttl } = configuration;
        if systems.is_empty() || scenarios.is_empty() || *runs == 0 || *seeds == 0 || *at_once == 0 {
            let help = "set at least one system, one scenario, one run, one seed, and one run at a time";
            return Err(ExperimentError::Pointless(help.to_owned()));
        }
        if ttl.0 < Duration::from_secs(2) {
            let help = "set a TTL of at least 2 s: the simulator's etcd grants no shorter leases";
            return Err(ExperimentError::Pointless(help.to_owned()));
        }
        let simulator = Simulator::find(sim.as_deref())?;
        let plots = plots(configuration);
        let simulated = simulate(&simulator, &plots, *seeds)?;
        let live = in_parallel(systems, systems.len(), |&system| {
            let of: Vec<_> = plots.iter().filter(|plot| plot.system == system).copied().collect();
            play(system, &of, *at_once)
        })?;
        let live: Vec<_> = live.into_iter().flatten().collect();
        Ok(Findings { cells: cells(configuration, &simulated, &live) })
    }

    fn section(_: &Configuration, findings: &Findings) -> Section {
        let mut section = Section { tables: vec![table(findings)], ..Section::default() };
        let Findings { cells } = findings;
        section.expect(
            format!(
                "the share of each outcome differs by at most {TOLERANCE} between simulation and live servers"
            ),
            !cells.is_empty() && cells.iter().all(|cell| cell.distance() <= TOLERANCE),
        );
        let of = |fence| cells.iter().filter(move |cell| cell.fence == fence);
        section.expect(
            "with fencing there is no verdict but overlaps, simulated and live",
            of(Fencing::On).count() > 0 && of(Fencing::On).all(Cell::is_safe),
        );
        let stale = |runs: fn(&Cell) -> &BTreeMap<String, u32>| {
            let counts = of(Fencing::Off).flat_map(runs);
            counts
                .filter(|(verdicts, _)| verdicts.contains("stale_write"))
                .map(|(_, count)| count)
                .sum::<u32>()
        };
        let (simulated, live) = (stale(|cell| &cell.simulated), stale(|cell| &cell.live));
        section.expect("without fencing there are stale writes in both", simulated > 0 && live > 0);
        let equal = cells.iter().filter(|cell| cell.distance() < f64::EPSILON).count();
        section.remarks.push(format!(
            "Of {} combinations of scenario, system and arm, {equal} have exactly the same shares.",
            cells.len()
        ));
        section
    }
}

/// The verdicts of one run.
struct Played {
    plot: Plot,
    fence: Fencing,
    verdicts: String,
}

fn plots(configuration: &Configuration) -> Vec<Plot> {
    let Configuration { systems, scenarios, runs, ttl, .. } = configuration;
    let all = scenarios.iter().flat_map(|&scenario| systems.iter().map(move |&system| (scenario, system)));
    all.flat_map(|(scenario, system)| {
        (0..*runs).map(move |run| Plot::new(scenario, system, ttl.0, run, *runs))
    })
    .collect()
}

fn simulate(simulator: &Simulator, plots: &[Plot], seeds: u32) -> Result<Vec<Played>, ExperimentError> {
    let stage = Stage::new()?;
    let numbered: Vec<_> = plots.iter().enumerate().collect();
    let played = in_parallel(&numbered, SIMULATIONS_AT_ONCE, |&(number, &plot)| {
        let file = stage.directory().join(format!("{number}.toml"));
        let mut played = Vec::new();
        for seed in 0..u64::from(seeds) {
            let verdicts = simulator.replay(&plot.schedule(seed), &file)?;
            let of_arm = Fencing::BOTH.into_iter().zip(&verdicts);
            played.extend(of_arm.map(|(fence, kinds)| Played { plot, fence, verdicts: name(kinds) }));
        }
        Ok::<_, ExperimentError>(played)
    })?;
    Ok(played.into_iter().flatten().collect())
}

fn play(system: System, plots: &[Plot], at_once: usize) -> Result<Vec<Played>, ExperimentError> {
    let stage = Stage::new()?;
    let fleet = Fleet::start(&stage, system)?;
    let servers = fleet.addresses();
    let runs: Vec<_> =
        plots.iter().enumerate().flat_map(|run| Fencing::BOTH.map(|fence| (run, fence))).collect();
    in_parallel(&runs, at_once, |&((number, &plot), fence)| {
        let run = format!("{}-{number}-{}", plot.scenario.as_str(), fence.as_str());
        let outcome = plot.play(&stage, &servers, &run, fence)?;
        let kinds = outcome.verdicts.iter().copied().collect();
        Ok(Played { plot, fence, verdicts: name(&kinds) })
    })
}

fn name(kinds: &BTreeSet<VerdictKind>) -> String {
    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

fn cells(configuration: &Configuration, simulated: &[Played], live: &[Played]) -> Vec<Cell> {
    let Configuration { systems, scenarios, .. } = configuration;
    let count = |played: &[Played], scenario, system, fence| {
        let mut counts = BTreeMap::new();
        for run in played {
            if (run.plot.scenario, run.plot.system, run.fence) == (scenario, system, fence) {
                *counts.entry(run.verdicts.clone()).or_default() += 1;
            }
        }
        counts
    };
    let mut cells = Vec::new();
    for &scenario in scenarios {
        for &system in systems {
            for fence in Fencing::BOTH {
                let simulated = count(simulated, scenario, system, fence);
                let live = count(live, scenario, system, fence);
                cells.push(Cell { scenario, system, fence, simulated, live });
            }
        }
    }
    cells
}

impl Cell {
    /// Returns the verdicts of all runs.
    fn verdicts(&self) -> BTreeSet<&str> {
        self.simulated.keys().chain(self.live.keys()).map(String::as_str).collect()
    }

    /// Returns the largest difference between the shares of any set of verdicts.
    fn distance(&self) -> f64 {
        let differences = self
            .verdicts()
            .into_iter()
            .map(|verdicts| (share(&self.simulated, verdicts) - share(&self.live, verdicts)).abs());
        differences.fold(0.0, f64::max)
    }

    fn is_safe(&self) -> bool {
        self.verdicts().into_iter().all(|verdicts| ["none", "overlap"].contains(&verdicts))
    }
}

fn share(counts: &BTreeMap<String, u32>, verdicts: &str) -> f64 {
    let all: u32 = counts.values().sum();
    f64::from(counts.get(verdicts).copied().unwrap_or(0)) / f64::from(all.max(1))
}

fn table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "The number of runs for each set of verdicts.",
        &["scenario", "system", "fence", "verdicts", "simulated", "live"],
    );
    for cell in &findings.cells {
        let of = |counts: &BTreeMap<String, u32>, verdicts: &str| {
            let all: u32 = counts.values().sum();
            format!("{}/{all}", counts.get(verdicts).copied().unwrap_or(0))
        };
        for verdicts in cell.verdicts() {
            table.row([
                cell.scenario.as_str().to_owned(),
                cell.system.as_str().to_owned(),
                cell.fence.as_str().to_owned(),
                verdicts.to_owned(),
                of(&cell.simulated, verdicts),
                of(&cell.live, verdicts),
            ]);
        }
    }
    table
}
