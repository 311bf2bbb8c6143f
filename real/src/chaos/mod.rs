//! The long run: workers on live servers, and a fault every few seconds, drawn from a seed.
//!
//! [`Plan`] has the faults and their times, all drawn before the run begins. `deployment.rs` holds the
//! servers, workers and links, and strikes and heals each [`Fault`]; `timeline.rs` keeps their order. [`run`]
//! carries out the plan, then heals everything and waits until every worker has been served again: first
//! safety, then liveness. `operator.rs` raises counters that were lost, if the run has an operator. The
//! histories of the processes and the faults, which are events too, are merged and judged: [`Report`].
//! `committed.rs` adds the effects that PostgreSQL holds, if it keeps the record.
//!
//! Workers reach the servers and the resource through proxies, so that any link can fail and the run needs no
//! root.
#![allow(clippy::disallowed_methods, reason = "a run on live processes uses real time")]

mod committed;
mod deployment;
mod effect;
mod events;
mod fault;
mod locks;
mod operator;
mod page;
mod plan;
mod report;
mod stored;
mod tail;
mod timeline;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use files::{Draft, Parents};
use history::Event;
use resource::Fencing;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::faults::FaultError;
use crate::judgement::{Judgement, Queue};
use crate::lab::{LabError, Machine, Software};
use crate::metrics::Targets;
use crate::primitive::Primitive;
use crate::record::Record;
use crate::recording::{ReadError, read};
use crate::servers::ServerError;
use crate::stop::Stop;
use crate::systems::System;
use crate::tokens::Tokens;

use deployment::Deployment;
pub use fault::{End, Fault, FaultKind, Holds, Server};
pub(crate) use page::page;
pub use plan::{Plan, Planned};
pub use report::{Count, Report};
pub use stored::ChaosPageError;
use timeline::{Step, Timeline};

/// Timeout for every worker to be served, before the first fault and after the last.
const SERVED_WITHIN: Duration = Duration::from_secs(60);

/// Begins the event of a grant in the history of a worker, and that of the claim of a job.
const GRANT: &str = r#""event":"lease_acquired""#;
const CLAIM: &str = r#""event":"task_started""#;

/// Ends the event of an accepted write there.
const WRITE: &str = r#""outcome":"accepted""#;

/// The options of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Configuration {
    /// The lock system: one Redis with a replica, five Redis for Redlock, three etcd, or three ZooKeeper;
    /// `None` if the workers need no lock, since PostgreSQL has their queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// The switch for refusing stale tokens. Nothing else depends on it.
    pub fence: Fencing,
    /// The seed from which the plan is drawn.
    pub seed: u64,
    /// The time during which faults strike.
    #[serde(rename = "lasts_ms", serialize_with = "as_millis")]
    pub lasts: Duration,
    /// The mean time between faults.
    #[serde(rename = "every_ms", serialize_with = "as_millis")]
    pub every: Duration,
    /// The kinds of faults; those that the system can't have are left out.
    pub faults: Vec<FaultKind>,
    /// The number of workers, each a process.
    pub workers: usize,
    /// The number of locks they contend for.
    pub keys: u64,
    /// The primitive that the workers contend for.
    pub primitive: Primitive,
    /// The record of ticks and jobs.
    #[serde(skip_serializing_if = "Record::is_default")]
    pub record: Record,
    /// The source of the workers' fencing tokens, of Redis and Redlock.
    #[serde(skip_serializing_if = "Tokens::is_default")]
    pub tokens: Tokens,
    /// The TTL of a lease.
    #[serde(rename = "ttl_ms", serialize_with = "as_millis")]
    pub ttl: Duration,
    /// The duration of the work before a write.
    #[serde(rename = "work_ms", serialize_with = "as_millis")]
    pub work: Duration,
    /// True if an operator raises the counters of a Redis that has lost its data.
    pub raise: bool,
}

fn as_millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(time.as_millis())
}

impl Configuration {
    /// Returns the kinds of faults that can strike this system.
    pub fn kinds(&self) -> impl Iterator<Item = FaultKind> + '_ {
        self.faults.iter().copied().filter(|kind| kind.strikes(self.system, self.record))
    }

    /// Returns the command that repeats the run.
    pub fn command(&self) -> String {
        let Self {
            system,
            fence,
            seed,
            lasts,
            every,
            faults,
            workers,
            keys,
            primitive,
            record,
            tokens,
            ttl,
            work,
            raise,
        } = self;
        let system = system.map_or_else(String::new, |system| format!(" --system {}", system.as_str()));
        let mut command = format!(
            "real chaos{system} --fence {} --seed {seed} --for {}ms --every {}ms --workers {workers} \
             --keys {keys} --ttl {}ms --work {}ms",
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
        if *primitive != Primitive::Mutex {
            command.push_str(&format!(" --primitive {primitive}"));
        }
        if !record.is_default() {
            command.push_str(&format!(" --record {}", record.as_str()));
        }
        if !tokens.is_default() {
            command.push_str(&format!(" --tokens {}", tokens.as_str()));
        }
        if *raise {
            command.push_str(" --raise");
        }
        command
    }

    /// Returns the name of the system: `postgres` if there are no lock servers.
    pub fn system_name(&self) -> &'static str {
        self.system.map_or(Record::Postgres.as_str(), System::as_str)
    }

    /// Returns the record and the tokens as further items of a title, if they are not the default.
    pub fn notes(&self) -> String {
        self.record.note(self.system.is_some()) + &self.tokens.note()
    }

    /// Returns the number of lock servers.
    pub fn servers(&self) -> usize {
        self.system.map_or(0, servers_of)
    }

    /// Returns the number of addresses that a worker knows: for Redis one, that of the primary.
    pub fn places(&self) -> usize {
        match self.system {
            Some(System::Redis) => 1,
            _ => self.servers(),
        }
    }
}

/// Returns the number of lock servers of a run on `system`: of Redis a primary and its replica.
const fn servers_of(system: System) -> usize {
    match system {
        System::Redis => 2,
        System::Redlock => 5,
        System::Etcd | System::Zookeeper => 3,
    }
}

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ChaosError {
    /// There are no workers, no locks, or no time.
    #[error("nothing to run: set --workers and --keys at least 1, and --every and --work more than 0")]
    Nothing,
    /// The plan has no fault.
    #[error("no fault strikes within --for {0:?}: make it longer, or --every shorter")]
    NoFault(Duration),
    /// A server failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A fault could not be made.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// A process of this project failed.
    #[error(transparent)]
    Process(#[from] LabError),
    /// A lost counter could not be raised.
    #[error(
        "the counter of a Redis that lost its data could not be raised; the last output of `real raise`:\n{0}"
    )]
    Raise(String),
    /// A worker exited without a fault that kills it.
    #[error("{name} exited, though no fault killed it; its last output:\n{words}")]
    Ended {
        /// The worker.
        name: String,
        /// The last lines of its log.
        words: String,
    },
    /// The workers were not served before the first fault.
    #[error(
        "not every worker was served within {} s before the first fault: reduce the load on the machine",
        SERVED_WITHIN.as_secs()
    )]
    Idle,
    /// The rows of ticks and jobs could not be read.
    #[error("PostgreSQL does not say which tasks have taken effect: {0}; repeat the run")]
    Rows(String),
    /// A proxy found no port.
    #[error("no port for a link: {0}; raise this user's limits (ulimit -n)")]
    Proxy(io::Error),
    /// The history could not be written.
    #[error("the history is incomplete: {0}; set TMPDIR to a disk with space")]
    Events(io::Error),
    /// The history of a process could not be read.
    #[error(transparent)]
    History(#[from] ReadError),
    /// The results could not be written.
    #[error("{0} (--out)")]
    Results(#[from] files::Error),
    /// The threads of the links could not be started.
    #[error("the links' threads could not be started: {0}; raise this user's limits (ulimit -u)")]
    Runtime(io::Error),
}

/// Carries out the plan drawn from `configuration` and writes to the folder `out`: `plan.json`;
/// `history.jsonl`, all events in one order; and `report.json`. Calls `on_strike` just before each fault
/// strikes. With `targets`, the workers serve their metrics, and it has their ports. Asked to stop, it
/// reports on the run so far.
///
/// # Errors
///
/// [`ChaosError`] if the run could not be carried out. Verdicts are not errors.
pub fn run(
    configuration: &Configuration,
    out: &Path,
    stop: &Stop,
    targets: Option<&Targets>,
    mut on_strike: impl FnMut(&str),
) -> Result<Report, ChaosError> {
    let Configuration { workers, keys, every, work, .. } = configuration;
    if *workers == 0 || *keys == 0 || every.is_zero() || work.is_zero() {
        return Err(ChaosError::Nothing);
    }
    let mut plan = Plan::draw(configuration);
    if plan.faults.is_empty() {
        return Err(ChaosError::NoFault(configuration.lasts));
    }
    if let Some(aside) = files::put_aside(out)? {
        on_strike(&format!("the earlier run is in {} now", aside.display()));
    }
    files::create_folder(out)?;
    let outputs = ["plan.json", "history.jsonl", "report.json"].map(|file| out.join(file));
    files::try_outputs(&outputs.each_ref().map(PathBuf::as_path), &[], Parents::Exist)?;
    keep(&json!({ "configuration": configuration, "faults": plan.faults }), &out.join("plan.json"))?;
    let place = (Machine::this(), Software::this());
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ChaosError::Runtime)?;
    let _links = executor.enter();
    let mut deployment = Deployment::set_up(configuration, targets)?;
    let grant = if configuration.primitive == Primitive::Jobs { CLAIM } else { GRANT };
    if !deployment.all_have(grant, SERVED_WITHIN, stop)? && !stop.is_asked() {
        return Err(ChaosError::Idle);
    }
    let struck = carry_out(&mut deployment, &plan, stop, &mut on_strike)?;
    plan.faults.truncate(struck);
    let served_at_end =
        deployment.all_have(if configuration.raise { WRITE } else { grant }, SERVED_WITHIN, stop)?;
    let interrupted = stop.is_asked();
    let ended = deployment.end()?;
    let mut history = read(&ended.files)?;
    let commits_lost = ended.rows.as_deref().map(|rows| committed::insert(&mut history.events, rows));
    let path = out.join("history.jsonl");
    let bytes = write_history(&history.events, &path)?;
    let queue = configuration.system.map_or(Queue::Unknown, System::queue);
    let judgement = Judgement::of_queue(&history.events, queue, Some(SERVED_WITHIN));
    let mut report = Report::of(configuration, &plan, &history.events, bytes, judgement, place);
    report.interrupted = interrupted;
    report.commits_lost = commits_lost;
    report.served_at_end = served_at_end;
    keep(&report, &out.join("report.json"))?;
    Ok(report)
}

/// Strikes and heals each fault at its time, or as soon after it as possible, until it is asked to stop.
/// Returns the number of faults that struck.
fn carry_out(
    deployment: &mut Deployment<'_>,
    plan: &Plan,
    stop: &Stop,
    on_strike: &mut impl FnMut(&str),
) -> Result<usize, ChaosError> {
    let begun = Instant::now();
    let mut timeline = Timeline::new(&plan.faults);
    while let Some(due) = timeline.due() {
        if stop.block(due.saturating_sub(begun.elapsed())) {
            break;
        }
        match timeline.step() {
            Some(Step::Strike(planned)) => {
                on_strike(&planned.to_string());
                let fault = deployment.strike(planned.fault, planned.aimed)?;
                if !fault.is_instant() {
                    timeline.struck(planned, fault, begun.elapsed());
                }
            }
            Some(Step::Heal(lasting)) => {
                if let Some(again) = deployment.heal(lasting.fault)? {
                    timeline.push(lasting.again(begun.elapsed(), again));
                }
            }
            None => {}
        }
    }
    Ok(plan.faults.len() - timeline.coming())
}

fn keep(value: &impl Serialize, path: &Path) -> Result<(), files::Error> {
    let failed = |error: serde_json::Error| files::Error::at(path)(error.into());
    files::write(path, serde_json::to_vec_pretty(value).map_err(failed)?)
}

/// Writes the history and returns the file's length in bytes.
fn write_history(history: &[Event], path: &Path) -> Result<u64, files::Error> {
    let mut draft = Draft::begin(path)?;
    let written = history.iter().try_for_each(|event| event.write_json(&mut draft));
    written.and_then(|()| draft.flush()).map_err(files::Error::at(path))?;
    draft.commit()?;
    Ok(path.metadata().map_err(files::Error::at(path))?.len())
}
