//! Experiment 1: the holder pauses for longer than its TTL.
//!
//! Two workers, each a process, and a resource, a third. Worker a acquires, finds its lease valid, and pauses before it
//! writes; its lease expires, worker b acquires, writes and releases; a goes on and writes. Without fencing the resource
//! takes both writes, the later from the holder whose turn was over; with it, it answers a with 409.
//!
//! The pause is made in two ways: the worker's thread is blocked, as by a garbage collection, or the whole process is
//! stopped by SIGSTOP and continued by SIGCONT.
//!
//! Source: the lab text, section 10, experiment 1; Kleppmann, "How to do distributed locking" (2016).
#![allow(clippy::disallowed_methods, reason = "an experiment on live processes runs in real time")]

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use dlock::LockKey;
use resource::ResourceKey;
use resource::audit::{Kind, VerdictKind};
use serde::Serialize;

use super::actors::{Actor, ResourceActor};
use super::fleet::Fleet;
use super::machine::Machine;
use super::{ExperimentError, story};
use crate::backends::BackendKind;
use crate::history;
use crate::judgement::Judgement;
use crate::servers::Stage;

/// What the experiment is run with. The lab's: TTL 2 s, pause 5 s.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Configuration {
    /// How long a lease lives.
    pub ttl_ms: u64,
    /// How long worker a pauses.
    pub pause_ms: u64,
    /// How long a worker works before it writes.
    pub work_ms: u64,
}

/// What makes worker a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseBy {
    /// Its thread is blocked: a garbage collection that stops the world.
    World,
    /// SIGSTOP, and SIGCONT when the pause is over.
    Sigstop,
}

/// All that was found.
#[derive(Debug, Serialize)]
pub struct Results {
    experiment: u32,
    title: &'static str,
    command: String,
    configuration: Configuration,
    machine: Machine,
    arms: Vec<Arm>,
}

/// One run.
#[derive(Debug, Serialize)]
pub struct Arm {
    backend: BackendKind,
    pause: PauseBy,
    fence: &'static str,
    /// Writes that the resource took, in order: worker and token.
    accepted: Vec<String>,
    refused: Vec<String>,
    /// What `GET /r/KEY` answers at the end.
    resource: String,
    /// Whose value the resource holds at the end.
    value_of: String,
    stale_token_rejections_total: u64,
    /// With fencing: the answer to one more write with the stale token.
    answer_to_stale_token: Option<String>,
    verdicts: Vec<String>,
    as_expected: bool,
    /// The histories of the three processes, in one order.
    story: Vec<String>,
}

/// Runs all arms on servers of each of `backends`, all at the same time: fencing off and on, by a blocked thread and by SIGSTOP.
///
/// # Errors
///
/// [`ExperimentError`] if the experiment could not be carried out; a result that was not expected is none.
pub fn run(
    backends: &[BackendKind],
    configuration: Configuration,
    command: String,
) -> Result<Results, ExperimentError> {
    let arms = in_parallel(backends, |&backend| {
        let stage = Stage::new()?;
        let fleet = Fleet::start(&stage, backend)?;
        let scene = Scene { stage: &stage, backend, servers: fleet.addresses(), configuration };
        scene.play_all()
    })?;
    let title = "Pause longer than the TTL";
    let arms = arms.into_iter().flatten().collect();
    Ok(Results { experiment: 1, title, command, configuration, machine: Machine::this(), arms })
}

/// What `job` makes of each of `items`, in their order, each on a thread of its own.
fn in_parallel<I: Sync, T: Send>(
    items: &[I],
    job: impl Fn(&I) -> Result<T, ExperimentError> + Sync,
) -> Result<Vec<T>, ExperimentError> {
    thread::scope(|scope| {
        let running: Vec<_> = items.iter().map(|item| scope.spawn(|| job(item))).collect();
        let joined = running.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

struct Scene<'a> {
    stage: &'a Stage,
    backend: BackendKind,
    servers: String,
    configuration: Configuration,
}

impl Scene<'_> {
    /// The arms share the lock server, and nothing else.
    fn play_all(&self) -> Result<Vec<Arm>, ExperimentError> {
        let arms = [PauseBy::World, PauseBy::Sigstop].map(|by| [(by, "off"), (by, "on")]);
        in_parallel(arms.as_flattened(), |&(by, fence)| self.play(by, fence))
    }

    fn play(&self, by: PauseBy, fence: &'static str) -> Result<Arm, ExperimentError> {
        let folder = match by {
            PauseBy::World => format!("world-{fence}"),
            PauseBy::Sigstop => format!("sigstop-{fence}"),
        };
        let resource = ResourceActor::start(self.stage, &folder, fence)?;
        let pause = format!("{}ms", self.configuration.pause_ms);
        let pausing: &[&str] = if by == PauseBy::Sigstop { &["--stop"] } else { &["--pause", &pause] };
        let mut a = self.worker(&folder, "a", &resource, pausing)?;
        match by {
            PauseBy::World => a.told("fault_applied")?,
            PauseBy::Sigstop => a.stopped()?,
        }
        let paused = Instant::now();
        let mut b = self.worker(&folder, "b", &resource, &[])?;
        b.ended()?;
        if by == PauseBy::Sigstop {
            thread::sleep(
                Duration::from_millis(self.configuration.pause_ms).saturating_sub(paused.elapsed()),
            );
            a.process.resume();
        }
        a.ended()?;
        self.judge(by, fence, &folder, &resource, &[&a, &b, &resource.actor])
    }

    fn worker(
        &self,
        key: &str,
        name: &str,
        resource: &ResourceActor,
        more: &[&str],
    ) -> Result<Actor, ExperimentError> {
        let Configuration { ttl_ms, work_ms, .. } = self.configuration;
        let (address, ttl, work) = (resource.address(), format!("{ttl_ms}ms"), format!("{work_ms}ms"));
        let mut arguments =
            vec!["--backend", self.backend.as_str(), "--servers", &self.servers, "--key", key];
        arguments.extend(["--resource", &address, "--ttl", &ttl, "--work", &work, "--patience", "60s"]);
        arguments.extend(more);
        Ok(Actor::start(self.stage, key, name, "worker", &arguments)?)
    }

    fn judge(
        &self,
        by: PauseBy,
        fence: &'static str,
        key: &str,
        resource: &ResourceActor,
        actors: &[&Actor],
    ) -> Result<Arm, ExperimentError> {
        let files: Vec<_> = actors.iter().map(|actor| &actor.history).collect();
        let history = history::read(&files)?;
        let judgement = Judgement::of(&history.events, false, None);
        let rejections = resource.metric("resource_stale_token_rejections_total")?;
        let key = resource_key(key)?;
        let value = resource.read(&key)?;
        let stale = history.events.iter().find_map(|event| match event.kind {
            Kind::WriteRejected { token, .. } => Some(token),
            _ => None,
        });
        let answer = stale.map(|token| resource.write(&key, token)).transpose()?;
        let names = |writes: &[resource::audit::WriteBy]| writes.iter().map(ToString::to_string).collect();
        let mut arm = Arm {
            backend: self.backend,
            pause: by,
            fence,
            accepted: names(&judgement.summary.accepted),
            refused: names(&judgement.summary.refused),
            value_of: writer_of(&value),
            resource: value,
            stale_token_rejections_total: rejections,
            answer_to_stale_token: answer.map(|(status, body)| format!("{status} {body}")),
            verdicts: judgement.verdicts.iter().map(ToString::to_string).collect(),
            as_expected: false,
            story: story::lines(&history.events),
        };
        arm.as_expected = arm.is_as_expected(&judgement);
        Ok(arm)
    }
}

impl Arm {
    /// Off: both writes are taken, the stale one last. On: it is refused, counted, and the value is b's.
    fn is_as_expected(&self, judgement: &Judgement) -> bool {
        let workers = |writes: &[String]| {
            writes
                .iter()
                .map(|write| write.split(':').next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        let stale = judgement.verdicts.iter().any(|verdict| verdict.kind == VerdictKind::StaleWrite);
        let overlap = judgement.verdicts.iter().any(|verdict| verdict.kind == VerdictKind::Overlap);
        let (accepted, refused) = (workers(&self.accepted), workers(&self.refused));
        overlap
            && match self.fence {
                "off" => accepted == ["b", "a"] && refused.is_empty() && stale && self.value_of == "a",
                _ => {
                    let refuses = self
                        .answer_to_stale_token
                        .as_ref()
                        .is_some_and(|answer| answer.starts_with("HTTP/1.1 409"));
                    let counted = self.stale_token_rejections_total == 1;
                    accepted == ["b"]
                        && refused == ["a"]
                        && judgement.is_clean(false)
                        && self.value_of == "b"
                        && counted
                        && refuses
                }
            }
    }
}

impl Results {
    /// Whether every arm gave what the lab demands.
    pub fn as_expected(&self) -> bool {
        self.arms.iter().all(|arm| arm.as_expected)
    }

    /// Both arms side by side, for each backend and each way to pause.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for pair in self.arms.chunks(2) {
            let [off, on] = pair else { continue };
            // Writing to a String can't fail.
            let _ = writeln!(text, "\n{}, {}", off.backend.as_str(), off.pause.explain());
            text.push_str(&story::side_by_side(["fencing off", "fencing on"], &column(off), &column(on)));
            if let Some(answer) = &on.answer_to_stale_token {
                let _ = writeln!(text, "the stale token once more: {answer}");
            }
        }
        text
    }
}

impl PauseBy {
    const fn explain(self) -> &'static str {
        match self {
            Self::World => "its thread blocked, as by a garbage collection",
            Self::Sigstop => "the process stopped by SIGSTOP",
        }
    }
}

fn column(arm: &Arm) -> Vec<String> {
    let mut lines = arm.story.clone();
    lines.push(String::new());
    lines.push(format!("writes taken: {}", arm.accepted.join(", ")));
    lines.push(format!("the value is {}'s", arm.value_of));
    lines.push(format!("stale token rejections: {}", arm.stale_token_rejections_total));
    lines.push(if arm.as_expected { "as expected".to_owned() } else { "NOT AS EXPECTED".to_owned() });
    lines
}

/// The worker that wrote the value: `{"value":"b:7f3c9e12 2.1",…}`.
fn writer_of(answer: &str) -> String {
    let value = answer.split(r#""value":""#).nth(1).unwrap_or_default();
    value.split([':', '"']).next().unwrap_or_default().to_owned()
}

fn resource_key(name: &str) -> Result<ResourceKey, ExperimentError> {
    let no_key = |error: String| ExperimentError::Resource(std::io::Error::other(error));
    let key = LockKey::new(name, "0").map_err(|error| no_key(error.to_string()))?;
    ResourceKey::new(key.name()).map_err(|error| no_key(error.to_string()))
}
