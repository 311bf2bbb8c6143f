//! Experiment 2: Redlock under a partition.
//!
//! Five independent Redis servers. Client a reaches them through links that can be cut; nodes can be stopped
//! by SIGSTOP. The first part shows what the majority achieves: without a minority of the nodes the lock can
//! be acquired, without a majority it can't, and no client holds it then. The second part shows what it does
//! not achieve: under the same faults the holder pauses for longer than its TTL, as in experiment 1.
//!
//! Source: the lab text, section 10, experiment 2; the arguments are in `redlock_partition.md`, which the
//! report prints.

use std::time::Duration;

use history::story;
use history::{Event, Kind, Span, VerdictKind};
use resource::Fencing;
use serde::{Deserialize, Serialize};

use super::{Experiment, ExperimentError};
use crate::faults::Direction;
use crate::lab::actors::{Crew, ResourceActor};
use crate::lab::network::Network;
use crate::lab::outcome::{Outcome, between, cell, first, writers};
use crate::lab::parallel::in_parallel;
use crate::report::{Section, Table};
use crate::servers::{Redis, Stage};
use crate::systems::System;

/// Redlock tolerates the failure of two of them.
const NODES: usize = 5;
/// Runs at the same time, each with five Redis of its own.
const AT_ONCE: usize = 5;

/// Experiment 2.
#[derive(Debug)]
pub struct RedlockPartition;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    ttl: Span,
    pause: Span,
    work: Span,
    acquire_timeout: Span,
    long_ttl: Span,
}

/// The fault, and the number of nodes it affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fault {
    None,
    /// Client a and the nodes can't reach each other.
    CutOff(usize),
    /// The nodes' replies don't reach client a.
    RepliesHeld(usize),
    /// The nodes are stopped by SIGSTOP.
    Stopped(usize),
    /// As `CutOff`, from the moment at which client a holds the lock.
    CutOffLater(usize),
}

/// The faults under which the lock is requested.
const AVAILABILITY: [Fault; 7] = [
    Fault::None,
    Fault::CutOff(2),
    Fault::Stopped(1),
    Fault::Stopped(2),
    Fault::CutOff(3),
    Fault::RepliesHeld(3),
    Fault::Stopped(3),
];
/// The faults under which the holder pauses.
const SAFETY: [Fault; 4] = [Fault::None, Fault::CutOff(2), Fault::Stopped(1), Fault::CutOffLater(3)];

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    availability: Vec<Availability>,
    safety: Vec<Safety>,
}

/// The availability of the lock under one fault.
#[derive(Debug, Serialize, Deserialize)]
struct Availability {
    fault: Fault,
    /// The time until client a was granted the lock; `None` if it was not.
    granted_after_ms: Option<f64>,
    /// The time until client b, which reaches all nodes, was then granted the lock.
    next_after_ms: Option<f64>,
    #[serde(flatten)]
    outcome: Outcome,
}

/// A run in which the holder pauses.
#[derive(Debug, Serialize, Deserialize)]
struct Safety {
    fault: Fault,
    fence: Fencing,
    stale_token_rejections_total: u64,
    #[serde(flatten)]
    outcome: Outcome,
}

impl Experiment for RedlockPartition {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 2;
    const TITLE: &'static str = "Redlock under a partition";
    const QUESTION: &'static str = "What does a majority of five Redis give that one does not, and does it \
         stop a holder that has paused?";
    const COMMITTED: &'static str = include_str!("../../experiments/2.toml");
    const BACKGROUND: &'static str = include_str!("redlock_partition.md");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { ttl, pause, work, acquire_timeout, long_ttl } = configuration;
        if pause.0 <= ttl.0 + work.0 || long_ttl.0 <= 2 * acquire_timeout.0 {
            let help = "set a pause longer than TTL and work together, and a long_ttl longer than twice \
                 acquire_timeout";
            return Err(ExperimentError::Pointless(help.to_owned()));
        }
        let runs: Vec<_> =
            SAFETY.iter().flat_map(|&fault| Fencing::BOTH.map(|fence| (fault, fence))).collect();
        Ok(Findings {
            availability: in_parallel(&AVAILABILITY, AT_ONCE, |&fault| {
                Scene::set(configuration)?.ask(fault)
            })?,
            safety: in_parallel(&runs, AT_ONCE, |&(fault, fence)| {
                Scene::set(configuration)?.pause(fault, fence)
            })?,
        })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        let Findings { availability, safety } = findings;
        let mut section = Section {
            tables: vec![availability_table(availability), safety_table(safety)],
            stories: stories(safety),
            ..Section::default()
        };
        section.expect(
            "with a minority of the nodes cut off or stopped the lock was granted",
            availability.iter().any(|run| run.fault.has_majority() && run.fault != Fault::None)
                && availability.iter().filter(|run| run.fault.has_majority()).all(Availability::is_granted),
        );
        section.expect(
            "with a majority away it was not",
            availability.iter().any(|run| !run.fault.has_majority())
                && availability.iter().all(|run| run.fault.has_majority() || !run.is_granted()),
        );
        let served = |run: &Availability| {
            run.next_after_ms.is_some_and(|ms| ms < configuration.long_ttl.0.as_secs_f64() * 500.0)
        };
        section.expect(
            "and no client held it then: the next client with all links was served long before a TTL was \
             over",
            availability.iter().all(served),
        );
        section.expect(
            "a pause longer than the TTL gave two holders with all nodes up, with two cut off, with one \
             stopped",
            !safety.is_empty() && safety.iter().all(|run| run.outcome.has(VerdictKind::Overlap)),
        );
        let of = |fence| safety.iter().filter(move |run| run.fence == fence);
        section.expect(
            "without fencing the stale write was accepted each time",
            of(Fencing::Off).all(|run| {
                writers(&run.outcome.accepted) == "b a" && run.outcome.has(VerdictKind::StaleWrite)
            }),
        );
        section.expect(
            "with fencing it was refused with 409 each time",
            of(Fencing::On).count() > 0 && of(Fencing::On).all(Safety::is_saved),
        );
        section
    }
}

/// Five Redis servers, and client a's links to them.
struct Scene<'a> {
    configuration: &'a Configuration,
    nodes: Vec<Redis>,
    links: Network,
    /// Dropped last, since the other fields use its folder.
    stage: Stage,
}

impl<'a> Scene<'a> {
    fn set(configuration: &'a Configuration) -> Result<Self, ExperimentError> {
        let stage = Stage::new()?;
        let nodes = Redis::start_many(&stage, NODES)?;
        let addresses: Vec<_> = nodes.iter().map(Redis::address).collect();
        Ok(Self { configuration, nodes, links: Network::to(&addresses)?, stage })
    }

    /// Requests the lock for client a; when a has given up or released, requests it for client b.
    fn ask(mut self, fault: Fault) -> Result<Availability, ExperimentError> {
        let resource = ResourceActor::start(&self.stage, "ask", Fencing::On.as_str())?;
        self.apply(fault);
        let (far, near) = (self.links.addresses(), self.addresses());
        let Configuration { acquire_timeout, long_ttl, .. } = *self.configuration;
        let crew = self.crew("ask", &near, resource.address(), long_ttl.0);
        let mut a = Crew { servers: &far, acquire_timeout: acquire_timeout.0, ..crew }.worker("a", &[])?;
        a.ended()?;
        // Stopped nodes continue. The links stay cut, since b does not use them.
        for node in &mut self.nodes {
            node.process().resume();
        }
        let near = self.addresses();
        let mut b = self.crew("ask", &near, resource.address(), long_ttl.0).worker("b", &[])?;
        b.ended()?;
        let (outcome, events) = Outcome::of(&[&a.history, &b.history, &resource.actor.history])?;
        let granted_after = |process| waited(&events, process).map(|waited| waited.as_secs_f64() * 1e3);
        Ok(Availability {
            fault,
            granted_after_ms: granted_after("a"),
            next_after_ms: granted_after("b"),
            outcome,
        })
    }

    /// Pauses client a while it holds the lock, for longer than its TTL, while client b waits for it.
    fn pause(mut self, fault: Fault, fence: Fencing) -> Result<Safety, ExperimentError> {
        let resource = ResourceActor::start(&self.stage, "pause", fence.as_str())?;
        self.apply(fault);
        let (far, near) = (self.links.addresses(), self.addresses());
        let Configuration { ttl, pause, .. } = *self.configuration;
        let crew = self.crew("pause", &near, resource.address(), ttl.0);
        let mut a = Crew { servers: &far, ..crew }.worker("a", &["--pause", &pause.to_string()])?;
        a.wait_for_event("fault_applied")?;
        if let Fault::CutOffLater(count) = fault {
            self.links.cut(count);
        }
        let mut b = crew.worker("b", &[])?;
        b.ended()?;
        a.ended()?;
        let (outcome, _) = Outcome::of(&[&a.history, &b.history, &resource.actor.history])?;
        let stale_token_rejections_total = resource.metric("resource_stale_token_rejections_total")?;
        Ok(Safety { fault, fence, stale_token_rejections_total, outcome })
    }

    fn apply(&mut self, fault: Fault) {
        match fault {
            Fault::None | Fault::CutOffLater(_) => {}
            Fault::CutOff(count) => self.links.cut(count),
            Fault::RepliesHeld(count) => self.links.cut_one_way(count, Direction::ToClient),
            Fault::Stopped(count) => {
                self.nodes.iter_mut().take(count).for_each(|node| node.process().pause());
            }
        }
    }

    fn addresses(&self) -> String {
        self.nodes.iter().map(Redis::address).collect::<Vec<_>>().join(",")
    }

    fn crew<'c>(&'c self, run: &'c str, servers: &'c str, resource: &'c str, ttl: Duration) -> Crew<'c> {
        let work = self.configuration.work.0;
        Crew { work, ..Crew::new(&self.stage, run, System::Redlock, servers, resource, ttl) }
    }
}

/// Returns the time from a process's first request to its grant.
fn waited(events: &[Event], process: &str) -> Option<Duration> {
    let asked = first(events, process, |kind| matches!(kind, Kind::LeaseRequested { .. }))?;
    let granted = first(events, process, |kind| matches!(kind, Kind::LeaseAcquired { .. }))?;
    Some(between(asked, granted))
}

impl Availability {
    fn is_granted(&self) -> bool {
        self.granted_after_ms.is_some()
    }
}

impl Safety {
    fn is_saved(&self) -> bool {
        let Outcome { accepted, refused, .. } = &self.outcome;
        (writers(accepted).as_str(), writers(refused).as_str()) == ("b", "a")
            && self.outcome.is_safe()
            && self.stale_token_rejections_total == 1
    }
}

impl Fault {
    /// Returns whether client a and a majority of the nodes reach each other.
    const fn has_majority(self) -> bool {
        match self {
            Self::None | Self::CutOffLater(_) => true,
            Self::CutOff(away) | Self::RepliesHeld(away) | Self::Stopped(away) => away <= NODES / 2,
        }
    }

    fn explain(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::CutOff(count) => format!("{count} cut off"),
            Self::RepliesHeld(count) => format!("replies of {count} held"),
            Self::Stopped(count) => format!("{count} stopped"),
            Self::CutOffLater(count) => format!("{count} cut off later"),
        }
    }
}

fn availability_table(runs: &[Availability]) -> Table {
    let mut table = Table::new(
        "Whether client a gets the lock, and how soon the next client does, in milliseconds. Stopped nodes \
         go on before the next client asks.",
        &["nodes of five", "granted", "after ms", "next after ms"],
    );
    let millis = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
    for run in runs {
        table.row([
            run.fault.explain(),
            if run.is_granted() { "yes" } else { "no" }.to_owned(),
            millis(run.granted_after_ms),
            millis(run.next_after_ms),
        ]);
    }
    table
}

fn safety_table(runs: &[Safety]) -> Table {
    let mut table = Table::new(
        "The holder pauses for longer than its TTL. \"Later\": after its grant.",
        &["nodes of five", "fence", "two holders", "taken", "refused", "stale", "409s"],
    );
    for run in runs {
        table.row([
            run.fault.explain(),
            run.fence.as_str().to_owned(),
            if run.outcome.has(VerdictKind::Overlap) { "yes" } else { "no" }.to_owned(),
            cell(&run.outcome.accepted),
            cell(&run.outcome.refused),
            run.outcome.count(VerdictKind::StaleWrite).to_string(),
            run.stale_token_rejections_total.to_string(),
        ]);
    }
    table
}

/// Renders both arms of one fault side by side.
fn stories(runs: &[Safety]) -> Vec<(String, String)> {
    let pair = runs.chunks(2).find(|pair| pair[0].fault == Fault::CutOff(2));
    let told = pair.and_then(|pair| {
        let [off, on] = pair else { return None };
        let columns = [("fencing off", off), ("fencing on", on)];
        let columns = story::side_by_side(&columns.map(|(title, run)| (title, run.outcome.story.as_slice())));
        Some(("redlock, two of five nodes cut off from a".to_owned(), columns))
    });
    told.into_iter().collect()
}
