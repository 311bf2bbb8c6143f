//! Experiment 1: the holder pauses for longer than its TTL.
//!
//! Two workers and a resource, each a process. Worker a acquires, checks its lease, and pauses before it
//! writes. Its lease expires; worker b acquires, writes and releases. Then a continues and writes. Without
//! fencing the resource accepts both writes, the later one from the former holder; with fencing it answers a
//! with 409.
//!
//! The pause is made in two ways: the worker's thread is blocked, as by a garbage collection, or the whole
//! process is stopped by SIGSTOP and continued by SIGCONT.
//!
//! Source: the lab text, section 10, experiment 1; Kleppmann, "How to do distributed locking" (2016).
#![allow(clippy::disallowed_methods, reason = "an experiment on live processes runs in real time")]

use std::thread;
use std::time::Instant;

use history::story;
use history::{Kind, Span, VerdictKind};
use resource::Fencing;
use resource::ResourceKey;
use serde::{Deserialize, Serialize};

use super::{Experiment, ExperimentError};
use crate::lab::actors::{Actor, Crew, ResourceActor};
use crate::lab::fleet::Fleet;
use crate::lab::outcome::{Outcome, cell, writers};
use crate::lab::parallel::in_parallel;
use crate::report::{Section, Table};
use crate::servers::Stage;
use crate::systems::System;

/// Experiment 1.
#[derive(Debug)]
pub struct PauseOutlivesTtl;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    systems: Vec<System>,
    /// The TTL of a lease.
    ttl: Span,
    /// The duration of worker a's pause.
    pause: Span,
    /// The duration of the work before a write.
    work: Span,
}

/// The method of pausing worker a.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PauseBy {
    /// Its thread is blocked, as by a stop-the-world garbage collection.
    World,
    /// SIGSTOP, and SIGCONT when the pause is over.
    Sigstop,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    arms: Vec<Arm>,
}

/// One run.
#[derive(Debug, Serialize, Deserialize)]
struct Arm {
    system: System,
    pause: PauseBy,
    fence: Fencing,
    #[serde(flatten)]
    outcome: Outcome,
    /// The answer to `GET /r/KEY` at the end.
    resource: String,
    /// The worker whose value the resource holds at the end.
    value_of: String,
    stale_token_rejections_total: u64,
    /// With fencing: the answer to one more write with the stale token.
    answer_to_stale_token: Option<String>,
}

impl Experiment for PauseOutlivesTtl {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 1;
    const TITLE: &'static str = "Pause longer than the TTL";
    const QUESTION: &'static str =
        "A holder pauses for longer than its lease lives, and then writes: who stops it?";
    const COMMITTED: &'static str = include_str!("../../experiments/1.toml");

    /// Runs all arms at the same time on the servers of each system: fencing off and on, with a blocked
    /// thread and with SIGSTOP.
    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, ttl, pause, work } = configuration;
        if pause.0 <= ttl.0 + work.0 {
            let help = "the pause must be longer than TTL and work together: set a longer --pause";
            return Err(ExperimentError::Pointless(help.to_owned()));
        }
        let arms = in_parallel(systems, systems.len(), |&system| {
            let stage = Stage::new()?;
            let fleet = Fleet::start(&stage, system)?;
            let scene = Scene { stage: &stage, system, servers: fleet.addresses(), configuration };
            scene.play_all()
        })?;
        Ok(Findings { arms: arms.into_iter().flatten().collect() })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        let Findings { arms } = findings;
        let mut section = Section { tables: vec![table(arms)], stories: stories(arms), ..Section::default() };
        let of = |fence| arms.iter().filter(move |arm| arm.fence == fence);
        section.expect(
            "without fencing the resource accepted b's write and then a's, whose lease had expired",
            of(Fencing::Off).count() > 0 && of(Fencing::Off).all(Arm::is_corrupted),
        );
        section.expect(
            "with fencing it refused a's write with 409, counted it, and holds b's value",
            of(Fencing::On).count() > 0 && of(Fencing::On).all(Arm::is_saved),
        );
        let overlaps = arms.iter().filter(|arm| arm.outcome.has(VerdictKind::Overlap)).count();
        section.expect(
            "the lock alone did not prevent it: every run had two holders at once, with and without fencing",
            overlaps == arms.len(),
        );
        let Configuration { ttl, pause, .. } = configuration;
        section.remarks.push(format!(
            "TTL {ttl}, pause {pause}; two holders at once in {overlaps} of {} runs.",
            arms.len()
        ));
        section
    }
}

struct Scene<'a> {
    stage: &'a Stage,
    system: System,
    servers: String,
    configuration: &'a Configuration,
}

impl Scene<'_> {
    /// Runs all arms. They share the lock server and nothing else.
    fn play_all(&self) -> Result<Vec<Arm>, ExperimentError> {
        let arms = [PauseBy::World, PauseBy::Sigstop].map(|by| Fencing::BOTH.map(|fence| (by, fence)));
        in_parallel(arms.as_flattened(), 4, |&(by, fence)| self.play(by, fence))
    }

    fn play(&self, by: PauseBy, fence: Fencing) -> Result<Arm, ExperimentError> {
        let Configuration { ttl, pause, work, .. } = *self.configuration;
        let run = format!("{}-{}", by.as_str(), fence.as_str());
        let resource = ResourceActor::start(self.stage, &run, fence.as_str())?;
        let crew = Crew {
            work: work.0,
            ..Crew::new(self.stage, &run, self.system, &self.servers, resource.address(), ttl.0)
        };
        let span = pause.to_string();
        let mut a = match by {
            PauseBy::World => crew.worker("a", &["--pause", &span])?,
            PauseBy::Sigstop => crew.worker("a", &["--stop"])?,
        };
        match by {
            PauseBy::World => a.wait_for_event("fault_applied")?,
            PauseBy::Sigstop => a.stopped()?,
        }
        let paused = Instant::now();
        let mut b = crew.worker("b", &[])?;
        b.ended()?;
        if by == PauseBy::Sigstop {
            thread::sleep(pause.0.saturating_sub(paused.elapsed()));
            a.process.resume();
        }
        a.ended()?;
        self.judge(by, fence, &crew.key()?, &resource, &[&a, &b])
    }

    fn judge(
        &self,
        pause: PauseBy,
        fence: Fencing,
        key: &ResourceKey,
        resource: &ResourceActor,
        workers: &[&Actor],
    ) -> Result<Arm, ExperimentError> {
        let files: Vec<_> =
            workers.iter().copied().chain([&resource.actor]).map(|actor| &actor.history).collect();
        let (outcome, events) = Outcome::of(&files)?;
        let rejections = resource.metric("resource_stale_token_rejections_total")?;
        let value = resource.read(key)?;
        let stale = events.iter().find_map(|event| match event.kind {
            Kind::WriteRejected { token, .. } => Some(token),
            _ => None,
        });
        let answer = stale.map(|token| resource.write(key, token)).transpose()?;
        Ok(Arm {
            system: self.system,
            pause,
            fence,
            outcome,
            value_of: writer_of(&value),
            resource: value,
            stale_token_rejections_total: rejections,
            answer_to_stale_token: answer.map(|(status, body)| format!("{status} {body}")),
        })
    }
}

impl Arm {
    /// Returns whether both writes were accepted, the stale one last.
    fn is_corrupted(&self) -> bool {
        let Outcome { accepted, refused, .. } = &self.outcome;
        writers(accepted) == "b a"
            && refused.is_empty()
            && self.outcome.has(VerdictKind::StaleWrite)
            && self.value_of == "a"
    }

    /// Returns whether the stale write was refused and counted, and is refused again when repeated.
    fn is_saved(&self) -> bool {
        let Outcome { accepted, refused, .. } = &self.outcome;
        let refuses =
            self.answer_to_stale_token.as_ref().is_some_and(|answer| answer.starts_with("HTTP/1.1 409"));
        (writers(accepted).as_str(), writers(refused).as_str()) == ("b", "a")
            && self.outcome.is_safe()
            && self.value_of == "b"
            && self.stale_token_rejections_total == 1
            && refuses
    }

    fn is_as_expected(&self) -> bool {
        self.outcome.has(VerdictKind::Overlap)
            && match self.fence {
                Fencing::Off => self.is_corrupted(),
                Fencing::On => self.is_saved(),
            }
    }

    fn column(&self) -> Vec<String> {
        let mut lines = self.outcome.story.clone();
        lines.push(String::new());
        lines.push(format!("writes accepted: {}", cell(&self.outcome.accepted)));
        lines.push(format!("the value is {}'s", self.value_of));
        lines.push(format!("stale token rejections: {}", self.stale_token_rejections_total));
        lines.push(if self.is_as_expected() { "as expected" } else { "NOT AS EXPECTED" }.to_owned());
        lines
    }
}

impl PauseBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::World => "world",
            Self::Sigstop => "sigstop",
        }
    }

    const fn explain(self) -> &'static str {
        match self {
            Self::World => "its thread blocked, as by a garbage collection",
            Self::Sigstop => "the process stopped by SIGSTOP",
        }
    }
}

fn table(arms: &[Arm]) -> Table {
    let mut table = Table::new(
        "Writes that the resource accepted and refused, as worker:token, and the worker whose value it holds \
         at the end.",
        &["system", "pause", "fence", "taken", "refused", "value", "409s", "stale"],
    );
    for arm in arms {
        let Outcome { accepted, refused, .. } = &arm.outcome;
        table.row([
            arm.system.as_str().to_owned(),
            arm.pause.as_str().to_owned(),
            arm.fence.as_str().to_owned(),
            cell(accepted),
            cell(refused),
            arm.value_of.clone(),
            arm.stale_token_rejections_total.to_string(),
            arm.outcome.count(VerdictKind::StaleWrite).to_string(),
        ]);
    }
    table
}

/// Renders both arms side by side, for each system and each kind of pause.
fn stories(arms: &[Arm]) -> Vec<(String, String)> {
    let story = |pair: &[Arm]| {
        let [off, on] = pair else { return None };
        let heading = format!("{}, {}", off.system.as_str(), off.pause.explain());
        let mut text = story::side_by_side(&[("fencing off", &off.column()), ("fencing on", &on.column())]);
        if let Some(answer) = &on.answer_to_stale_token {
            let (status, body) = answer.split_once(" {").unwrap_or((answer, ""));
            text += &format!("the stale token once more: {status}\n  {{{body}\n");
        }
        Some((heading, text))
    };
    arms.chunks(2).filter_map(story).collect()
}

/// Returns the worker that wrote the value: `{"value":"b:7f3c9e12 2.1",…}`.
fn writer_of(answer: &str) -> String {
    let value = answer.split(r#""value":""#).nth(1).unwrap_or_default();
    value.split([':', '"']).next().unwrap_or_default().to_owned()
}
