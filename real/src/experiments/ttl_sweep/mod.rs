//! Experiment 6: the cost of a TTL.
//!
//! A holder killed by SIGKILL does not release: until its lease expires, no other client is served. A short
//! TTL shortens this time, and takes the lock away from a holder that is merely slow. With fencing that costs
//! a refused write, without fencing a stale one: with fencing, only the time blocked matters for the choice
//! of a TTL.
//!
//! Source: the lab text, section 10, experiment 6.

mod section;

use std::time::Duration;

use history::{Event, Kind, Span};
use resource::Fencing;
use serde::{Deserialize, Serialize};

use super::{Experiment, ExperimentError};
use crate::lab::actors::{Crew, ResourceActor};
use crate::lab::fleet::Fleet;
use crate::lab::outcome::{Outcome, between, first};
use crate::lab::parallel::in_parallel;
use crate::report::Section;
use crate::servers::Stage;
use crate::systems::System;

/// Longer than any run: the holder that is killed never completes its work.
const FOREVER: Duration = Duration::from_secs(3600);
/// Runs of one system at the same time in which the holder is killed. They mostly wait.
const KILLS_AT_ONCE: usize = 16;
/// Those in which it pauses: fewer, for all begin and end together, and a busy machine pauses holders, too.
const PAUSES_AT_ONCE: usize = 8;

/// Experiment 6.
#[derive(Debug)]
pub struct TtlSweep;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    systems: Vec<System>,
    ttls: Vec<Span>,
    rounds: u32,
    pause: Span,
    work: Span,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    kills: Vec<Kill>,
    pauses: Vec<Pause>,
}

/// A run in which the holder is killed, with fencing on.
#[derive(Debug, Serialize, Deserialize)]
struct Kill {
    system: System,
    ttl: Span,
    /// From the holder's death to the waiter's grant, in milliseconds; `None` if it was not served.
    blocked_ms: Option<f64>,
    #[serde(flatten)]
    outcome: Outcome,
}

/// A run in which the holder pauses.
#[derive(Debug, Serialize, Deserialize)]
struct Pause {
    system: System,
    ttl: Span,
    fence: Fencing,
    #[serde(flatten)]
    outcome: Outcome,
}

impl Experiment for TtlSweep {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 6;
    const TITLE: &'static str = "TTL sweep with SIGKILL";
    const QUESTION: &'static str =
        "How long does a lock stay taken after its holder was killed, and what does a short TTL cost?";
    const COMMITTED: &'static str = include_str!("../../../experiments/6.toml");

    /// Runs all systems at the same time, and several runs of each, which have keys of their own. The pauses
    /// come after the kills, so that their load does not delay the grants that are timed there.
    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, ttls, rounds, .. } = configuration;
        if ttls.len() < 2 || *rounds == 0 {
            return Err(ExperimentError::Pointless("set at least two TTLs and one round".to_owned()));
        }
        let rounds = || 0..*rounds;
        let kills: Vec<_> = ttls.iter().flat_map(|&ttl| rounds().map(move |round| (ttl, round))).collect();
        let arms = ttls.iter().flat_map(|&ttl| Fencing::BOTH.map(|fence| (ttl, fence)));
        let pauses: Vec<_> = arms.flat_map(|arm| rounds().map(move |round| (arm, round))).collect();
        let of_systems = in_parallel(systems, systems.len(), |&system| {
            let stage = Stage::new()?;
            let fleet = Fleet::start(&stage, system)?;
            let scene = Scene { stage: &stage, system, servers: fleet.addresses(), configuration };
            let kills = in_parallel(&kills, KILLS_AT_ONCE, |&(ttl, round)| scene.kill(ttl, round))?;
            let pauses = in_parallel(&pauses, PAUSES_AT_ONCE, |&((ttl, fence), round)| {
                scene.pause(ttl, fence, round)
            })?;
            Ok::<_, ExperimentError>((kills, pauses))
        })?;
        let mut findings = Findings { kills: Vec::new(), pauses: Vec::new() };
        for (kills, pauses) in of_systems {
            findings.kills.extend(kills);
            findings.pauses.extend(pauses);
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
    /// Kills the holder as soon as another worker waits, when nearly all of its lease is left.
    fn kill(&self, ttl: Span, round: u32) -> Result<Kill, ExperimentError> {
        let run = format!("kill-{ttl}-{round}");
        let resource = ResourceActor::start(self.stage, &run, Fencing::On.as_str())?;
        let crew = self.crew(&run, &resource, ttl);
        let mut a = Crew { work: FOREVER, ..crew }.worker("a", &[])?;
        a.wait_for_event("section_entered")?;
        let mut b = crew.worker("b", &[])?;
        b.wait_for_event("lease_requested")?;
        let death = a.crash()?;
        b.ended()?;
        let (outcome, events) = Outcome::of(&[&a.history, &b.history, &resource.actor.history, &death])?;
        let blocked_ms = blocked(&events).map(|blocked| blocked.as_secs_f64() * 1e3);
        Ok(Kill { system: self.system, ttl, blocked_ms, outcome })
    }

    /// Pauses the holder for a while; another worker waits.
    fn pause(&self, ttl: Span, fence: Fencing, round: u32) -> Result<Pause, ExperimentError> {
        let run = format!("pause-{ttl}-{}-{round}", fence.as_str());
        let resource = ResourceActor::start(self.stage, &run, fence.as_str())?;
        let crew = self.crew(&run, &resource, ttl);
        let mut a = crew.worker("a", &["--pause", &self.configuration.pause.to_string()])?;
        // Not the pause itself: a holder whose lease ends before it drops its work.
        a.wait_for_event("section_entered")?;
        let mut b = crew.worker("b", &[])?;
        b.ended()?;
        a.ended()?;
        let (outcome, _) = Outcome::of(&[&a.history, &b.history, &resource.actor.history])?;
        let outcome = if round == 0 { outcome } else { outcome.without_text() };
        Ok(Pause { system: self.system, ttl, fence, outcome })
    }

    fn crew<'a>(&'a self, run: &'a str, resource: &'a ResourceActor, ttl: Span) -> Crew<'a> {
        let work = self.configuration.work.0;
        Crew { work, ..Crew::new(self.stage, run, self.system, &self.servers, resource.address(), ttl.0) }
    }
}

/// Returns the time from a's death to b's grant.
fn blocked(events: &[Event]) -> Option<Duration> {
    let death = first(events, "a", |kind| matches!(kind, Kind::ProcessCrashed { .. }))?;
    let grant = first(events, "b", |kind| matches!(kind, Kind::LeaseAcquired { .. }))?;
    Some(between(death, grant))
}
