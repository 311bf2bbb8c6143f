//! The forced race: the holder's release is held up until the next holder is in its critical section.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "each client has a thread of its own, in real time"
)]

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dlock::{Lock, LockKey, Options};
use history::{Effect, Kind};
use resource::Fencing;
use resource::client::Client;
use resource::worker::{Job, Pauses, Step, Worker};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tracing::Dispatch;
use tracing::field::display;
use tracing_subscriber::layer::SubscriberExt;

use super::Configuration;
use super::failed;
use super::release::{Gap, Release, Releasing};
use crate::experiments::ExperimentError;
use crate::lab::actors::ResourceActor;
use crate::lab::outcome::Outcome;
use crate::recording::{Recorder, speak_as};
use crate::servers::{Persistence, Redis, Stage};
use dlock::TokioRuntime;

/// The timeout of a client for its cue; long enough for a machine under load.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout of c's acquire: longer than a's lease lives, shorter than b holds the lock.
const C_ASKS: Duration = Duration::from_secs(1);
/// b's TTL. If its lock is not deleted, c would wait that long.
const B_TTL: Duration = Duration::from_secs(30);

/// One run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Forced {
    pub(super) release: Release,
    pub(super) fence: Fencing,
    /// The answer to a's release, whose lease had expired: `done` or `not_owner`.
    pub(super) told: Option<String>,
    /// True if c was granted the lock while b held it.
    pub(super) third_got_in: bool,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

/// A signal from one client to another.
#[derive(Clone)]
struct Cue(Arc<watch::Sender<bool>>);

/// The signals between the clients of one run.
#[derive(Clone)]
struct Script {
    /// a has found its own owner token under the key, and has not deleted the key yet.
    read: Cue,
    /// b is in its critical section.
    entered: Cue,
    /// a's release is over.
    released: Cue,
    /// c has released the lock, or given up.
    done: Cue,
}

/// Holds up a's release until b is in its critical section.
#[derive(Clone)]
struct HeldUp(Script);

/// Extends b's critical section until c is done.
#[derive(Clone)]
struct Waits(Script);

/// Runs it on a Redis of its own.
pub(super) fn play(
    release: Release,
    fence: Fencing,
    configuration: &Configuration,
) -> Result<Forced, ExperimentError> {
    let stage = Stage::new()?;
    let redis = Redis::start(&stage, "redis", Persistence::None)?;
    let resource = ResourceActor::start(&stage, "run", fence.as_str())?;
    let history = stage.directory().join("clients.jsonl");
    let (recorder, recording) = Recorder::open("clients", &history).map_err(|error| failed(&error))?;
    let scene = Scene {
        release,
        redis: redis.address(),
        resource: resource.address().to_owned(),
        configuration,
        script: Script { read: Cue::new(), entered: Cue::new(), released: Cue::new(), done: Cue::new() },
        dispatch: Dispatch::new(tracing_subscriber::registry().with(recorder)),
    };
    let third_got_in = scene.run()?;
    if let Some(error) = recording.failure() {
        return Err(failed(&error));
    }
    judge(release, fence, third_got_in, &[&history, &resource.actor.history])
}

fn judge(
    release: Release,
    fence: Fencing,
    third_got_in: bool,
    files: &[impl AsRef<Path>],
) -> Result<Forced, ExperimentError> {
    let (outcome, events) = Outcome::of(files)?;
    let told = events.iter().find_map(|event| match &event.kind {
        Kind::LeaseReleased { outcome, .. } if event.process.as_str() == "a" => outcome.as_ref(),
        _ => None,
    });
    let told = told.map(ToString::to_string);
    Ok(Forced { release, fence, told, third_got_in, outcome })
}

struct Scene<'a> {
    release: Release,
    redis: String,
    resource: String,
    configuration: &'a Configuration,
    script: Script,
    dispatch: Dispatch,
}

impl Scene<'_> {
    /// Runs the three clients; returns whether c was granted the lock.
    fn run(&self) -> Result<bool, ExperimentError> {
        let Configuration { ttl, .. } = *self.configuration;
        let script = &self.script;
        thread::scope(|scope| {
            let a = scope.spawn(|| {
                let round = self.client("a", ttl.0, TIMEOUT, None, HeldUp(script.clone()), ());
                script.released.give();
                round
            });
            let b = scope.spawn(|| {
                let (read, pauses) = (Some(&script.read), Waits(script.clone()));
                self.client("b", B_TTL, TIMEOUT, read, (), pauses)
            });
            let c = scope.spawn(|| {
                let round = self.client("c", B_TTL, C_ASKS, Some(&script.released), (), ());
                script.done.give();
                round
            });
            let joined = [a, b, c].map(|client| match client.join() {
                Ok(round) => round,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let [a, b, c] = joined;
            match (a?, b?) {
                (true, true) => c,
                _ => {
                    Err(ExperimentError::Failed("a and b must both get the lock, or there is no race".into()))
                }
            }
        })
    }

    /// Runs one round of a client on this thread, after its cue; returns whether it was granted the lock.
    fn client<G: Gap, P: Pauses>(
        &self,
        name: &str,
        ttl: Duration,
        acquire_timeout: Duration,
        cue: Option<&Cue>,
        gap: G,
        pauses: P,
    ) -> Result<bool, ExperimentError> {
        speak_as(name);
        let executor = Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
        let round = async {
            if let Some(cue) = cue {
                cue.wait().await;
            }
            let runtime = TokioRuntime::new(Handle::current());
            let release = self.release;
            let backend = Releasing::connect(runtime.clone(), &self.redis, name, release, gap).await;
            let mut options = Options::new(ttl);
            options.instance = Some(name.to_owned());
            // A release that is held up must not time out.
            options.request_timeout = TIMEOUT;
            let lock = Lock::new(backend.map_err(|error| failed(&error))?, options);
            let client = Client::new(runtime, &self.resource);
            let worker = Worker::new(lock.map_err(|error| failed(&error))?, client, pauses);
            let key = LockKey::new("release", "0").map_err(|error| failed(&error))?;
            let mut job = Job::new(key, self.configuration.work.0);
            job.acquire_timeout = acquire_timeout;
            Ok(worker.round(&job).await.is_ok())
        };
        tracing::dispatcher::with_default(&self.dispatch, || executor.block_on(round))
    }
}

impl Cue {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    fn give(&self) {
        self.0.send_replace(true);
    }

    /// Waits for the signal. After the timeout it returns anyway: the run's result is then not as expected.
    async fn wait(&self) {
        let mut given = self.0.subscribe();
        let _ = tokio::time::timeout(TIMEOUT, given.wait_for(|given| *given)).await;
    }
}

impl Gap for HeldUp {
    async fn pass(&self) {
        let detail = "held up in its release";
        let effect = display(Effect::Pause);
        history::emit!(FaultApplied {
            fault: 0_u64,
            verb: "pause",
            effect: effect,
            until: None::<u64>,
            detail: detail
        });
        self.0.read.give();
        self.0.entered.wait().await;
        let detail = "goes on";
        let effect = display(Effect::Pause);
        history::emit!(FaultHealed { fault: 0_u64, verb: "pause", effect: effect, detail: detail });
    }
}

impl Pauses for Waits {
    async fn at(&self, step: Step) {
        match step {
            Step::Granted => self.0.entered.give(),
            Step::Checked => self.0.done.wait().await,
            _ => {}
        }
    }
}
