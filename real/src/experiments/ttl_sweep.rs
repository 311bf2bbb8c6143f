//! Experiment 6: the cost of a TTL.
//!
//! A holder killed by SIGKILL does not release: until its lease expires, no other client is served. A short
//! TTL shortens this time, and takes the lock away from a holder that is merely slow. With fencing that costs
//! a refused write, without fencing a stale one: with fencing, only the time blocked matters for the choice
//! of a TTL.
//!
//! Source: the lab text, section 10, experiment 6.

use std::time::Duration;

use history::{Event, Kind, Span, VerdictKind};
use resource::Fencing;
use serde::{Deserialize, Serialize};

use super::{Experiment, ExperimentError};
use crate::lab::actors::{Crew, ResourceActor};
use crate::lab::fleet::Fleet;
use crate::lab::outcome::{Outcome, between, first};
use crate::lab::parallel::in_parallel;
use crate::lab::statistics::{median, median_interval, most};
use crate::report::{Axis, Figure, Line, Scale, Section, Table};
use crate::servers::Stage;
use crate::systems::System;

/// Longer than any run: the holder that is killed never completes its work.
const FOREVER: Duration = Duration::from_secs(3600);
/// Runs of one system at the same time. They mostly wait.
const AT_ONCE: usize = 16;

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

/// A run on the servers of one system.
#[derive(Clone, Copy)]
enum Task {
    Kill(Span, u32),
    Pause(Span, Fencing),
}

/// The result of a task.
enum Done {
    Kill(Kill),
    Pause(Pause),
}

impl Experiment for TtlSweep {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 6;
    const TITLE: &'static str = "TTL sweep with SIGKILL";
    const QUESTION: &'static str =
        "How long does a lock stay taken after its holder was killed, and what does a short TTL cost?";
    const COMMITTED: &'static str = include_str!("../../experiments/6.toml");

    /// Runs everything at the same time, each run with a key of its own.
    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, ttls, rounds, .. } = configuration;
        if ttls.len() < 2 || *rounds == 0 {
            return Err(ExperimentError::Pointless("set at least two TTLs and one round".to_owned()));
        }
        let kills = ttls.iter().flat_map(|&ttl| (0..*rounds).map(move |round| Task::Kill(ttl, round)));
        let pauses = ttls.iter().flat_map(|&ttl| Fencing::BOTH.map(|fence| Task::Pause(ttl, fence)));
        // The longest runs first.
        let mut tasks: Vec<_> = kills.chain(pauses).collect();
        tasks.reverse();
        let done = in_parallel(systems, systems.len(), |&system| {
            let stage = Stage::new()?;
            let fleet = Fleet::start(&stage, system)?;
            let scene = Scene { stage: &stage, system, servers: fleet.addresses(), configuration };
            in_parallel(&tasks, AT_ONCE, |&task| scene.play(task))
        })?;
        let mut findings = Findings { kills: Vec::new(), pauses: Vec::new() };
        for done in done.into_iter().flat_map(|done| done.into_iter().rev()) {
            match done {
                Done::Kill(kill) => findings.kills.push(kill),
                Done::Pause(pause) => findings.pauses.push(pause),
            }
        }
        Ok(findings)
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        let mut section = Section {
            tables: vec![blocked_table(configuration, findings), pause_table(configuration, findings)],
            figures: vec![figure(configuration, findings)],
            ..Section::default()
        };
        let Findings { kills, pauses } = findings;
        section.expect(
            "every waiter was served after the holder's death",
            !kills.is_empty() && kills.iter().all(|kill| kill.blocked_ms.is_some()),
        );
        let (shortest, longest) = ends(configuration);
        section.expect(
            format!(
                "on every system the lock stayed taken for longer with a TTL of {longest} than with \
                 {shortest}"
            ),
            configuration.systems.iter().all(|&system| {
                let blocked = |ttl| median(&findings.blocked(system, ttl));
                blocked(longest).zip(blocked(shortest)).is_some_and(|(long, short)| long > short)
            }),
        );
        section.expect(
            "killed holders left no violation and no overlap",
            kills.iter().all(|kill| kill.outcome.verdicts.is_empty()),
        );
        expect_of_pauses(&mut section, configuration, pauses);
        section.remarks.extend(whole_seconds(configuration, findings));
        section
    }
}

fn expect_of_pauses(section: &mut Section, configuration: &Configuration, pauses: &[Pause]) {
    let stale = |fence| {
        let of = pauses.iter().filter(move |pause| pause.fence == fence);
        of.map(|pause| pause.outcome.count(VerdictKind::StaleWrite)).sum::<usize>()
    };
    let safe = pauses.iter().filter(|pause| pause.fence == Fencing::On).all(|pause| pause.outcome.is_safe());
    let pause = configuration.pause;
    section.expect(
        format!(
            "with fencing, whatever the TTL, no holder that had paused for {pause} overwrote its \
             successor's value"
        ),
        !pauses.is_empty() && safe && stale(Fencing::On) == 0,
    );
    let short = configuration.ttls.iter().any(|ttl| *ttl < pause);
    section.expect(
        "without fencing it did where the TTL was shorter than the pause: safety then depends on the TTL",
        !short || stale(Fencing::Off) > 0,
    );
    let refused: usize = pauses.iter().map(|pause| pause.outcome.refused.len()).sum();
    section.remarks.push(format!(
        "Of the holders that paused for {pause}, {} were overtaken by the next one; fencing refused \
         {refused} of their writes, and without it {} stale ones were taken.",
        pauses.iter().filter(|pause| pause.outcome.has(VerdictKind::Overlap)).count(),
        stale(Fencing::Off),
    ));
}

struct Scene<'a> {
    stage: &'a Stage,
    system: System,
    servers: String,
    configuration: &'a Configuration,
}

impl Scene<'_> {
    fn play(&self, task: Task) -> Result<Done, ExperimentError> {
        match task {
            Task::Kill(ttl, round) => self.kill(ttl, round).map(Done::Kill),
            Task::Pause(ttl, fence) => self.pause(ttl, fence).map(Done::Pause),
        }
    }

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
    fn pause(&self, ttl: Span, fence: Fencing) -> Result<Pause, ExperimentError> {
        let run = format!("pause-{ttl}-{}", fence.as_str());
        let resource = ResourceActor::start(self.stage, &run, fence.as_str())?;
        let crew = self.crew(&run, &resource, ttl);
        let mut a = crew.worker("a", &["--pause", &self.configuration.pause.to_string()])?;
        a.wait_for_event("fault_applied")?;
        let mut b = crew.worker("b", &[])?;
        b.ended()?;
        a.ended()?;
        let (outcome, _) = Outcome::of(&[&a.history, &b.history, &resource.actor.history])?;
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

/// Returns the shortest and the longest TTL.
fn ends(configuration: &Configuration) -> (Span, Span) {
    let ttls = || configuration.ttls.iter().copied();
    let none = Span(Duration::ZERO);
    (ttls().min().unwrap_or(none), ttls().max().unwrap_or(none))
}

impl Findings {
    fn blocked(&self, system: System, ttl: Span) -> Vec<f64> {
        let of = self.kills.iter().filter(|kill| kill.system == system && kill.ttl == ttl);
        of.filter_map(|kill| kill.blocked_ms).collect()
    }
}

/// Explains that etcd's sessions last whole seconds: a shorter TTL does not free the lock earlier.
fn whole_seconds(configuration: &Configuration, findings: &Findings) -> Option<String> {
    let (ttl, _) = ends(configuration);
    let session_ms = ttl.0.as_secs_f64().ceil() * 1e3;
    let blocked_ms = median(&findings.blocked(System::Etcd, ttl))?;
    (session_ms > ttl.0.as_secs_f64() * 1e3 && blocked_ms > 0.9 * session_ms).then(|| {
        format!(
            "On etcd a TTL of {ttl} blocked the lock for {blocked_ms:.0} ms: a lock is tied to a session \
             there, and a session lasts whole seconds."
        )
    })
}

fn blocked_table(configuration: &Configuration, findings: &Findings) -> Table {
    let mut table = Table::new(
        "Milliseconds from the death of the holder, killed right after its grant, to the waiter's grant, with \
         fencing on. The median of all possible runs is between the two times with a confidence of 95 %.",
        &["system", "TTL", "killed", "served", "median", "95 % between", "longest", "violations"],
    );
    for &system in &configuration.systems {
        for &ttl in &configuration.ttls {
            let blocked = findings.blocked(system, ttl);
            let kills = findings.kills.iter().filter(|kill| kill.system == system && kill.ttl == ttl);
            let (killed, violations) = kills.fold((0, 0), |(killed, violations), kill| {
                (killed + 1, violations + usize::from(!kill.outcome.is_safe()))
            });
            let millis = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
            table.row([
                system.as_str().to_owned(),
                ttl.to_string(),
                killed.to_string(),
                blocked.len().to_string(),
                millis(median(&blocked)),
                median_interval(&blocked)
                    .map_or_else(|| "–".to_owned(), |(low, high)| format!("{low:.0} to {high:.0}")),
                millis(most(&blocked)),
                violations.to_string(),
            ]);
        }
    }
    table
}

fn pause_table(configuration: &Configuration, findings: &Findings) -> Table {
    let caption = format!(
        "The price of a short TTL: a holder that pauses for {} and then writes.",
        configuration.pause
    );
    let mut table = Table::new(
        caption,
        &["system", "TTL", "two holders", "stale, fence off", "stale, fence on", "refused"],
    );
    for &system in &configuration.systems {
        for &ttl in &configuration.ttls {
            let of = |fence| {
                findings
                    .pauses
                    .iter()
                    .find(move |pause| pause.system == system && pause.ttl == ttl && pause.fence == fence)
            };
            let stale = |fence| of(fence).map_or(0, |pause| pause.outcome.count(VerdictKind::StaleWrite));
            let overlap = of(Fencing::On).is_some_and(|pause| pause.outcome.has(VerdictKind::Overlap));
            table.row([
                system.as_str().to_owned(),
                ttl.to_string(),
                if overlap { "yes" } else { "no" }.to_owned(),
                stale(Fencing::Off).to_string(),
                stale(Fencing::On).to_string(),
                of(Fencing::On).map_or(0, |pause| pause.outcome.refused.len()).to_string(),
            ]);
        }
    }
    table
}

fn figure(configuration: &Configuration, findings: &Findings) -> Figure {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Log };
    let line = |&system: &System| {
        let point = |&ttl: &Span| Some((ttl.0.as_secs_f64(), median(&findings.blocked(system, ttl))? / 1e3));
        let points = configuration.ttls.iter().filter_map(point).collect();
        Line { name: system.as_str().to_owned(), points }
    };
    Figure {
        name: "experiment-6-blocked".to_owned(),
        caption: "Time blocked after the death of the holder, median, by TTL.".to_owned(),
        x: axis("TTL in s"),
        y: axis("blocked for, in s"),
        lines: configuration.systems.iter().map(line).collect(),
    }
}
