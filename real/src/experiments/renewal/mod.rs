//! Experiment 8: renewing a lease compared with acquiring again.
//!
//! A holder works for a part of its lease, pauses and writes while another worker waits for the lock. Without
//! renewal, the work has already used a part of the lease, and a pause as long as the rest lets the other
//! worker in. With a renewal every third of the TTL, the pause must last at least two thirds of it: the
//! window narrows. It does not close, since a paused process does not renew either.
//!
//! Renewal serves another purpose: work longer than a TTL completes with it, and never does without it,
//! however often the lock is acquired again.
//!
//! Source: the lab text, section 10, experiment 8.
#![allow(clippy::disallowed_methods, reason = "an experiment on live processes runs in real time")]

mod section;

use std::thread;
use std::time::Duration;

use history::{Kind, Span};
use resource::Fencing;
use serde::{Deserialize, Serialize};

use super::{Experiment, ExperimentError};
use crate::lab::actors::{Crew, ResourceActor};
use crate::lab::fleet::Fleet;
use crate::lab::network::Network;
use crate::lab::outcome::Outcome;
use crate::lab::parallel::in_parallel;
use crate::lab::tally::Tally;
use crate::report::Section;
use crate::servers::Stage;
use crate::systems::System;

/// The longest time between the event `write_sent` and the write to the socket.
const LEAVES: Duration = Duration::from_millis(50);
/// Longer than any run.
const CAP: &str = "1h";

/// Experiment 8.
#[derive(Debug)]
pub struct RenewalNarrows;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    systems: Vec<System>,
    ttl: Span,
    /// Durations in TTLs.
    pauses: Vec<f64>,
    phases: u32,
    /// Runs of a write in transit, for each kind of holder in each arm.
    transits: u32,
    /// Duration in TTLs.
    long_work: f64,
    /// The number of holders that begin it, each with its own lock.
    holders: u32,
    /// The number of times that each holder begins it.
    attempts: u32,
    at_once: usize,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    pauses: Vec<Paused>,
    under_way: Vec<UnderWay>,
    long_work: Vec<LongWork>,
}

/// All runs with one pause, over all phases of the lease.
#[derive(Debug, Serialize, Deserialize)]
struct Paused {
    #[serde(flatten)]
    cell: Cell,
    #[serde(flatten)]
    tally: Tally,
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cell {
    system: System,
    renewing: bool,
    fence: Fencing,
    /// Duration in TTLs.
    pause: f64,
}

/// A write in transit when its holder's host is cut off, and delivered after the next holder is done.
#[derive(Debug, Serialize, Deserialize)]
struct UnderWay {
    system: System,
    renewing: bool,
    fence: Fencing,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Work that is longer than a TTL.
#[derive(Debug, Serialize, Deserialize)]
struct LongWork {
    system: System,
    renewing: bool,
    /// The number of grants.
    grants: usize,
    /// The number of times that the work was completed and written.
    written: usize,
    /// The number of times that the work was lost: the lease expired before the write.
    expired: usize,
}

impl Experiment for RenewalNarrows {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 8;
    const TITLE: &'static str = "Renewing against acquiring again";
    const QUESTION: &'static str = "Does a watchdog that renews the lease close the window in which a paused \
         holder is overtaken, or does it make it narrower?";
    const COMMITTED: &'static str = include_str!("../../../experiments/8.toml");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, pauses, phases, transits, holders, at_once, .. } = configuration;
        if pauses.is_empty() || [*phases, *transits, *holders].contains(&0) || *at_once == 0 {
            let help = "set at least one pause, phase, transit and holder, and one run at a time";
            return Err(ExperimentError::Pointless(help.to_owned()));
        }
        let mut findings = Findings { pauses: Vec::new(), under_way: Vec::new(), long_work: Vec::new() };
        // One system after the other, so that the load of one does not pause another.
        for &system in systems {
            let stage = Stage::new()?;
            let fleet = Fleet::start(&stage, system)?;
            let scene = Scene { stage: &stage, system, servers: fleet.addresses(), configuration };
            findings.pauses.extend(scene.pauses()?);
            findings.under_way.extend(scene.writes_under_way()?);
            findings.long_work.extend(in_parallel(&[false, true], 2, |&renewing| scene.long_work(renewing))?);
        }
        Ok(findings)
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        section::section(configuration, findings)
    }
}

struct Scene<'a> {
    stage: &'a Stage,
    system: System,
    servers: String,
    configuration: &'a Configuration,
}

impl Scene<'_> {
    fn pauses(&self) -> Result<Vec<Paused>, ExperimentError> {
        let Configuration { pauses, phases, at_once, .. } = self.configuration;
        let cells: Vec<_> = [false, true]
            .into_iter()
            .flat_map(|renewing| Fencing::BOTH.map(|fence| (renewing, fence)))
            .flat_map(|(renewing, fence)| {
                pauses.iter().map(move |&pause| Cell { system: self.system, renewing, fence, pause })
            })
            .collect();
        let runs: Vec<_> =
            cells.iter().flat_map(|&cell| (0..*phases).map(move |phase| (cell, phase))).collect();
        let outcomes = in_parallel(&runs, *at_once, |&(cell, phase)| self.play(cell, phase))?;
        let of_cell = outcomes.chunks(*phases as usize);
        let paused = |(&cell, outcomes): (&Cell, &[Outcome])| Paused { cell, tally: Tally::of(outcomes) };
        Ok(cells.iter().zip(of_cell).map(paused).collect())
    }

    /// Runs one cell: the holder works for a part of its lease, pauses and writes; another worker waits from
    /// the beginning.
    fn play(&self, cell: Cell, phase: u32) -> Result<Outcome, ExperimentError> {
        let Cell { renewing, fence, pause, .. } = cell;
        let Configuration { ttl, phases, .. } = self.configuration;
        let how = if renewing { "renewing" } else { "again" };
        let run = format!("{how}-{}-{pause}-{phase}", fence.as_str());
        let resource = ResourceActor::start(self.stage, &run, fence.as_str())?;
        let crew = self.crew(&run, resource.address());
        let work = ttl.0.mul_f64((f64::from(phase) + 0.5) / f64::from(*phases));
        let pause = Span(ttl.0.mul_f64(pause)).to_string();
        let mut flags = vec!["--pause", &pause];
        if renewing {
            flags.extend(["--renew", CAP]);
        }
        let mut a = Crew { work, ..crew }.worker("a", &flags)?;
        a.wait_for_event("section_entered")?;
        let mut b = crew.worker("b", &[])?;
        a.ended()?;
        b.ended()?;
        Ok(Outcome::of(&[&a.history, &b.history, &resource.actor.history])?.0)
    }

    /// Runs all writes in transit.
    fn writes_under_way(&self) -> Result<Vec<UnderWay>, ExperimentError> {
        let Configuration { transits, at_once, .. } = *self.configuration;
        let arms = [false, true].map(|renewing| Fencing::BOTH.map(|fence| (renewing, fence)));
        let runs: Vec<_> = arms
            .as_flattened()
            .iter()
            .flat_map(|&arm| (0..transits).map(move |number| (arm, number)))
            .collect();
        in_parallel(&runs, at_once, |&((renewing, fence), number)| self.under_way(renewing, fence, number))
    }

    /// Runs a write in transit: the holder sends its write and its host is cut off. Its lease expires and
    /// another worker writes; then the network delivers the first write.
    fn under_way(&self, renewing: bool, fence: Fencing, number: u32) -> Result<UnderWay, ExperimentError> {
        let run = format!("under-way-{renewing}-{}-{number}", fence.as_str());
        let mut resource = ResourceActor::start(self.stage, &run, fence.as_str())?;
        let address = resource.address().to_owned();
        let crew = self.crew(&run, &address);
        let servers: Vec<_> = self.servers.split(',').map(ToOwned::to_owned).collect();
        let (to_lock, to_resource) = (Network::to(&servers)?, Network::to(std::slice::from_ref(&address))?);
        to_resource.cut(1);
        let flags: &[&str] = if renewing { &["--renew", CAP] } else { &[] };
        let (lock, data) = (to_lock.addresses(), to_resource.addresses());
        let mut a = Crew { servers: &lock, resource: &data, ..crew }.worker("a", flags)?;
        a.wait_for_event("write_sent")?;
        // The request has left its process by then: the proxy on this machine holds it.
        thread::sleep(LEAVES);
        to_lock.cut(servers.len());
        let mut b = crew.worker("b", &[])?;
        b.ended()?;
        to_resource.heal();
        to_lock.heal();
        a.ended()?;
        resource.wait_for_writes(2)?;
        let outcome = Outcome::of(&[&a.history, &b.history, &resource.actor.history])?.0;
        let outcome = if number == 0 { outcome } else { outcome.without_text() };
        Ok(UnderWay { system: self.system, renewing, fence, outcome })
    }

    /// Runs the long work of all holders of one kind at the same time: contenders of one worker, which mostly
    /// wait, each with a key of its own.
    fn long_work(&self, renewing: bool) -> Result<LongWork, ExperimentError> {
        let Configuration { ttl, long_work, holders, attempts, .. } = self.configuration;
        let run = format!("long-{renewing}");
        let resource = ResourceActor::start(self.stage, &run, Fencing::On.as_str())?;
        let crew = Crew { work: ttl.0.mul_f64(*long_work), ..self.crew(&run, resource.address()) };
        let (holders, rounds) = (holders.to_string(), attempts.to_string());
        let mut flags = vec!["--contenders", &holders, "--keys", &holders, "--rounds", &rounds];
        if renewing {
            flags.extend(["--renew", CAP]);
        }
        let mut a = crew.worker("a", &flags)?;
        a.ended()?;
        let (outcome, events) = Outcome::of(&[&a.history, &resource.actor.history])?;
        let left = |word: &str| {
            let is = |kind: &Kind| matches!(kind, Kind::SectionLeft { outcome: Some(how), .. } if how.as_str() == word);
            events.iter().filter(|event| is(&event.kind)).count()
        };
        let grants = events.iter().filter(|event| matches!(event.kind, Kind::LeaseAcquired { .. })).count();
        let written = outcome.accepted.len();
        Ok(LongWork { system: self.system, renewing, grants, written, expired: left("expired") })
    }

    fn crew<'a>(&'a self, run: &'a str, resource: &'a str) -> Crew<'a> {
        let ttl = self.configuration.ttl.0;
        // The waiter's work is short: only the time of its grant matters.
        Crew { work: ttl / 50, ..Crew::new(self.stage, run, self.system, &self.servers, resource, ttl) }
    }
}
