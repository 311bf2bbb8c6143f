//! The long run: workers on live servers, and a fault every few seconds, drawn from a seed.
//!
//! [`Plan`] is what will fail when, all drawn before anything begins; `stand.rs` is all that takes part, and how each
//! [`Fault`] is made and healed; [`run`] carries the plan out, then heals everything and waits until every worker has been
//! served again (safety first, then liveness, as TigerBeetle's simulator has it). The processes' histories and the faults,
//! which are events too, are put together and judged: [`Report`].
//!
//! Workers reach servers and resource through proxies, so that any link can fail and the run needs no root.
#![allow(clippy::disallowed_methods, reason = "a run on live processes goes by real time")]

mod events;
mod fault;
mod locks;
mod plan;
mod report;
mod stand;
mod tail;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use resource::Fencing;
use resource::audit::Event;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::faults::FaultError;
use crate::history::{ReadError, read};
use crate::judgement::Judgement;
use crate::lab::LabError;
use crate::servers::ServerError;
use crate::systems::System;

pub use fault::{End, Fault, FaultKind, Holds, Server};
pub use plan::{Plan, Planned};
pub use report::{Count, Report};
use stand::Stand;

/// How long every worker may take to be served, before the first fault and after the last.
const SERVED_WITHIN: Duration = Duration::from_secs(60);

/// What a run is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Configuration {
    /// The lock servers: a Redis and its replica, five Redis, three etcd, three ZooKeeper.
    pub system: System,
    /// Whether the resource refuses stale tokens. All else is the same.
    pub fence: Fencing,
    /// What the plan is drawn from.
    pub seed: u64,
    /// For how long faults strike.
    #[serde(rename = "lasts_ms", serialize_with = "as_millis")]
    pub lasts: Duration,
    /// How often, on average.
    #[serde(rename = "every_ms", serialize_with = "as_millis")]
    pub every: Duration,
    /// Which kinds of faults; those that such servers can't meet are left out.
    pub faults: Vec<FaultKind>,
    /// How many workers, each a process.
    pub workers: usize,
    /// How many locks they contend for.
    pub keys: u64,
    /// How long a lease lives.
    #[serde(rename = "ttl_ms", serialize_with = "as_millis")]
    pub ttl: Duration,
    /// How long a worker works before it writes.
    #[serde(rename = "work_ms", serialize_with = "as_millis")]
    pub work: Duration,
}

fn as_millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(time.as_millis())
}

impl Configuration {
    /// The kinds of faults that strike.
    pub fn kinds(&self) -> impl Iterator<Item = FaultKind> + '_ {
        self.faults.iter().copied().filter(|kind| kind.strikes(self.system))
    }

    /// The command that repeats the run.
    pub fn command(&self) -> String {
        let Self { system, fence, seed, lasts, every, faults, workers, keys, ttl, work } = self;
        let mut command = format!(
            "real chaos --system {} --fence {} --seed {seed} --for {}ms --every {}ms --workers {workers} --keys {keys} \
             --ttl {}ms --work {}ms",
            system.as_str(),
            fence.as_str(),
            lasts.as_millis(),
            every.as_millis(),
            ttl.as_millis(),
            work.as_millis(),
        );
        if faults.len() < FaultKind::value_variants().len() {
            let names: Vec<_> = faults.iter().map(|kind| kind.name()).collect();
            command.push_str(" --faults ");
            command.push_str(&names.join(","));
        }
        command
    }

    /// How many lock servers there are.
    pub const fn servers(&self) -> usize {
        match self.system {
            System::Redis => 2,
            System::Redlock => 5,
            System::Etcd | System::Zookeeper => 3,
        }
    }

    /// How many of them a worker knows: of a Redis and its replica, whichever is the primary.
    pub const fn places(&self) -> usize {
        match self.system {
            System::Redis => 1,
            _ => self.servers(),
        }
    }
}

/// A run that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ChaosError {
    /// There are no workers, locks or faults.
    #[error(
        "there is nothing to run: give --workers and --keys at least 1, and --every and --work more than 0"
    )]
    Nothing,
    /// A server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A fault.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// A process of ours.
    #[error(transparent)]
    Process(#[from] LabError),
    /// A worker ended by itself.
    #[error("{name} ended, which no fault explains; its last words:\n{words}")]
    Ended {
        /// Which.
        name: String,
        /// The last lines of its log.
        words: String,
    },
    /// The system worked for nobody, before the first fault.
    #[error("not all workers were granted the lock within {} s, before the first fault: give the machine less to do", SERVED_WITHIN.as_secs())]
    Idle,
    /// No proxy.
    #[error("no port for a link: {0}; raise the limits of this user")]
    Proxy(io::Error),
    /// The faults could not be told, or a process's history not be kept.
    #[error("the history is not whole: {0}; set TMPDIR to another disk")]
    Events(io::Error),
    /// The history of a process.
    #[error(transparent)]
    History(#[from] ReadError),
    /// The results could not be kept.
    #[error("{}: {source}; give --out another place", .path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No threads for the links.
    #[error("the links could not be started: {0}; raise the limits of this user")]
    Runtime(io::Error),
}

/// Carries out the plan that `configuration` draws, and leaves in the folder `out`: `plan.json`, `history.jsonl` with all
/// events in one order, and `report.json`. `tell` hears of each fault as it strikes.
///
/// # Errors
///
/// [`ChaosError`] if the run could not be carried out; verdicts are none.
pub fn run(
    configuration: &Configuration,
    out: &Path,
    mut tell: impl FnMut(&str),
) -> Result<Report, ChaosError> {
    let Configuration { workers, keys, every, work, .. } = configuration;
    if *workers == 0 || *keys == 0 || every.is_zero() || work.is_zero() {
        return Err(ChaosError::Nothing);
    }
    let plan = Plan::draw(configuration);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ChaosError::Results { path, source }
    };
    fs::create_dir_all(out).map_err(failed(out))?;
    keep(&json!({ "configuration": configuration, "faults": plan.faults }), &out.join("plan.json"))?;
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ChaosError::Runtime)?;
    let _links = executor.enter();
    let mut stand = Stand::set_up(configuration)?;
    if !stand.all_served(SERVED_WITHIN)? {
        return Err(ChaosError::Idle);
    }
    carry_out(&mut stand, &plan, &mut tell)?;
    // If they are not, the history says so.
    stand.all_served(SERVED_WITHIN)?;
    let (files, _stage) = stand.end()?;
    let history = read(&files)?;
    let path = out.join("history.jsonl");
    let bytes = write_history(&history.events, &path).map_err(failed(&path))?;
    let judgement = Judgement::of(&history.events, false, Some(SERVED_WITHIN));
    let report = Report::of(configuration, &plan, &history.events, bytes, judgement);
    keep(&report, &out.join("report.json"))?;
    Ok(report)
}

/// Strikes and heals, each at its time, or as soon after as can be.
fn carry_out(stand: &mut Stand<'_>, plan: &Plan, tell: &mut impl FnMut(&str)) -> Result<(), ChaosError> {
    let begun = Instant::now();
    let mut coming: VecDeque<_> = plan.faults.iter().collect();
    let mut lasting: Vec<(Instant, Fault)> = Vec::new();
    loop {
        let strike = coming.front().map(|planned| begun + Duration::from_millis(planned.at_ms));
        let heal = lasting.iter().map(|(at, _)| *at).min();
        let (Some(next), heals) = (match (strike, heal) {
            (Some(strike), Some(heal)) => (Some(strike.min(heal)), heal <= strike),
            (strike, heal) => (strike.or(heal), strike.is_none()),
        }) else {
            return Ok(());
        };
        thread::sleep(next.saturating_duration_since(Instant::now()));
        if heals {
            let Some(place) = lasting.iter().position(|(at, _)| *at == next) else { continue };
            let (_, fault) = lasting.swap_remove(place);
            stand.heal(fault)?;
        } else if let Some(planned) = coming.pop_front() {
            tell(&planned.to_string());
            let fault = stand.strike(planned.fault, planned.aimed)?;
            if !fault.is_instant() {
                lasting.push((Instant::now() + Duration::from_millis(planned.lasts_ms), fault));
            }
        }
    }
}

fn keep(value: &impl Serialize, path: &Path) -> Result<(), ChaosError> {
    let written =
        serde_json::to_vec_pretty(value).map_err(io::Error::from).and_then(|text| fs::write(path, text));
    written.map_err(|source| ChaosError::Results { path: path.to_owned(), source })
}

/// Returns how long the file is, in bytes.
fn write_history(history: &[Event], path: &Path) -> io::Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    history.iter().try_for_each(|event| event.write_json(&mut file))?;
    file.flush()?;
    Ok(path.metadata()?.len())
}
