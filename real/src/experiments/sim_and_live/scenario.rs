//! The scenarios: each as a schedule of the simulator and as processes on live servers, with the same
//! durations.

use std::fmt::Write as _;
use std::time::Duration;

use history::Span;
use resource::Fencing;
use serde::{Deserialize, Serialize};

use crate::experiments::ExperimentError;
use crate::lab::actors::{Crew, ResourceActor};
use crate::lab::outcome::Outcome;
use crate::servers::Stage;
use crate::systems::System;

/// The duration of worker b's work.
const B_WORKS: Duration = Duration::from_millis(20);
/// The time for which worker a holds the lock before it is killed; b is waiting by then.
const A_LIVES: Duration = Duration::from_millis(200);
/// The number of Redlock's nodes.
const NODES: u32 = 5;

/// Two workers on one lock, of which the first meets a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Scenario {
    /// The holder pauses for two and a half TTLs after it has checked its lease.
    GcPause,
    /// It pauses for half a TTL, at various points of its lease.
    PauseHalfTtl,
    /// No fault, but its work takes one and a half TTLs without renewal.
    WorkLongerThanTtl,
    /// It is killed.
    SigkillHolder,
}

/// A scenario with its durations: those of worker a and of its fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) scenario: Scenario,
    pub(super) system: System,
    ttl: Duration,
    work: Duration,
    pause: Duration,
}

impl Scenario {
    pub(super) fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Plot {
    /// Returns run number `run` of `runs`.
    pub(super) fn new(scenario: Scenario, system: System, ttl: Duration, run: u32, runs: u32) -> Self {
        let phase = (f64::from(run) + 0.5) / f64::from(runs);
        let (work, pause) = match scenario {
            Scenario::GcPause => (0.05, 2.5),
            Scenario::PauseHalfTtl => (phase, 0.5),
            Scenario::WorkLongerThanTtl => (1.5, 0.0),
            Scenario::SigkillHolder => (100.0, 0.0),
        };
        Self { scenario, system, ttl, work: ttl.mul_f64(work), pause: ttl.mul_f64(pause) }
    }

    /// Returns it as a schedule of the simulator with the seed `seed`.
    pub(super) fn schedule(&self, seed: u64) -> String {
        let Self { scenario, system, ttl, work, pause } = self;
        let [ttl, work, pause, b_works, a_lives] =
            [*ttl, *work, *pause, B_WORKS, A_LIVES].map(|span| format!("\"{}\"", Span(span)));
        let (about, name) = (scenario.as_str(), system.as_str());
        // `within` is long, since the live runs don't judge the time to be served either.
        let mut text = format!(
            "about = \"{about}\"\nsystem = \"{name}\"\nseed = {seed}\nttl = {ttl}\nwithin = \"60m\"\n\n\
             [[worker]]\nname = \"a\"\nwork = {work}\n\n\
             [[worker]]\nname = \"b\"\nstarts = \"100ms\"\nwork = {b_works}\ndeadline = \"60s\"\n"
        );
        if *system == System::Redlock {
            let _ = write!(text, "\n[redis]\nnodes = {NODES}\n");
        }
        let fault = match scenario {
            Scenario::WorkLongerThanTtl => None,
            Scenario::SigkillHolder => {
                Some(format!("after = \"entered\", plus = {a_lives} }}\nwhat = {{ crash = \"a\" }}"))
            }
            Scenario::GcPause | Scenario::PauseHalfTtl => {
                Some(format!("after = \"checked\" }}\nwhat = {{ pause = \"a\", for = {pause} }}"))
            }
        };
        if let Some(fault) = fault {
            let _ = write!(text, "\n[[fault]]\nwhen = {{ process = \"a\", {fault}\n");
        }
        text
    }

    /// Runs it as processes on live servers; `run` is its name in the stage.
    pub(super) fn play(
        &self,
        stage: &Stage,
        servers: &str,
        run: &str,
        fence: Fencing,
    ) -> Result<Outcome, ExperimentError> {
        let Self { scenario, system, ttl, work, pause } = *self;
        let resource = ResourceActor::start(stage, run, fence.as_str())?;
        let crew = Crew { work, ..Crew::new(stage, run, system, servers, resource.address(), ttl) };
        let pause = Span(pause).to_string();
        let mut a = match scenario {
            Scenario::GcPause | Scenario::PauseHalfTtl => crew.worker("a", &["--pause", &pause])?,
            Scenario::WorkLongerThanTtl | Scenario::SigkillHolder => crew.worker("a", &[])?,
        };
        a.wait_for_event("section_entered")?;
        let mut b = Crew { work: B_WORKS, ..crew }.worker("b", &[])?;
        let mut files = vec![a.history.clone(), b.history.clone(), resource.actor.history.clone()];
        if scenario == Scenario::SigkillHolder {
            b.wait_for_event("lease_requested")?;
            files.push(a.crash()?);
        } else {
            a.ended()?;
        }
        b.ended()?;
        Ok(Outcome::of(&files)?.0)
    }
}
