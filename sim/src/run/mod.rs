//! One run of a schedule: builds the world, lets the workers work while faults strike, and judges what
//! happened.
//!
//! [`cluster`] holds the servers and what survives their crashes ([`ensemble`]: those that are one of several
//! members), [`workload`] the workers and [`update`] those without the lock, [`inject`] the faults;
//! [`progress`] knows when all is done.

mod cluster;
mod ensemble;
mod inject;
mod machinery;
mod progress;
mod report;
mod update;
mod workload;

use std::sync::Arc;
use std::time::Duration;

use resource::audit::{Name, Nanos, Rules, audit};

use crate::entropy::Entropy;
use crate::mutants::Mutant;
use crate::record;
use crate::schedule::{Arm, Invalid, Recipe, Schedule, System};
use crate::trace::text::Names;
use crate::world::World;

pub use report::{Mismatch, Report};

use cluster::Cluster;
use inject::Injector;

/// A run that could not be made, or that the harness itself spoilt.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The schedule was made in code and breaks a rule.
    #[error("the schedule can't be run: {0}")]
    Invalid(#[from] Invalid),
    /// No thread could be started for the run.
    #[error("no thread for the run: {0}; run fewer at once (--threads)")]
    Thread(#[from] std::io::Error),
    /// Something panicked: a defect of ours, or of a library that the run drives.
    #[error(
        "the run of seed {seed} panicked: {message}; this is a defect of the simulator, please report it with the seed"
    )]
    Panicked {
        /// The run's seed.
        seed: u64,
        /// What the panic said.
        message: String,
    },
    /// An event outside the vocabulary was emitted.
    #[error("the run emitted an event that no history may hold: {0}; this is a defect of the simulator")]
    Vocabulary(String),
    /// Another tracing subscriber is installed, so nothing was recorded.
    #[error("nothing was recorded: this program has installed a tracing subscriber of its own; remove it")]
    Unrecorded,
}

/// Runs one arm of the schedule with all randomness keyed by `seed`, on a thread of its own.
///
/// A fresh thread, since the order of libraries' hash maps is only reproducible in one. The same schedule,
/// arm and seed give the same report, byte for byte, whatever else runs at the same time.
///
/// # Errors
///
/// [`RunError`] if the schedule is not valid, or the run itself fails. A verdict is not an error.
pub fn run(schedule: &Schedule, arm: Arm, seed: u64) -> Result<Report, RunError> {
    run_with(schedule, arm, seed, None)
}

/// As [`run`], with one mistake in every worker's lock or in the resource: what the simulator must find.
///
/// # Errors
///
/// As [`run`].
pub fn run_with(
    schedule: &Schedule,
    arm: Arm,
    seed: u64,
    mutant: Option<Mutant>,
) -> Result<Report, RunError> {
    schedule.validate()?;
    let mutant = mutant.or(schedule.mutant);
    let schedule = schedule.clone();
    #[allow(
        clippy::disallowed_methods,
        reason = "each run gets a fresh thread; nothing in it sees another's"
    )]
    let thread = std::thread::Builder::new()
        .name("run".to_owned())
        .spawn(move || on_this_thread(&schedule, arm, seed, mutant))?;
    match thread.join() {
        Ok(report) => report,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(RunError::Panicked {
                seed,
                message: message.unwrap_or_else(|| "without a message".to_owned()),
            })
        }
    }
}

fn on_this_thread(
    schedule: &Schedule,
    arm: Arm,
    seed: u64,
    mutant: Option<Mutant>,
) -> Result<Report, RunError> {
    // madsim's own randomness orders the tasks that are ready at the same instant.
    let runtime = madsim::runtime::Runtime::with_seed_and_config(seed, madsim::Config::default());
    let result = runtime.block_on(in_world(schedule, arm, seed, mutant));
    drop(runtime);
    result
}

async fn in_world(
    schedule: &Schedule,
    arm: Arm,
    seed: u64,
    mutant: Option<Mutant>,
) -> Result<Report, RunError> {
    let names = schedule.processes();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let latency = &schedule.network.latency;
    let world = World::new(Entropy::new(seed), &names, (latency.min.duration(), latency.max.duration()));
    let cluster = Cluster::new(&world, schedule, arm, mutant);
    let injector = Injector::new(&world, &cluster, &schedule.faults);
    cluster.tell(&injector);
    let (watching, counting) = (Arc::clone(&injector), Arc::clone(&cluster));
    record::start(&world, move |event| {
        counting.on_event(event);
        watching.on_event(event);
    });
    injector.start();
    cluster.start_all();
    cluster.served(schedule.limit.as_nanos()).await;
    cluster.settled(schedule.limit.as_nanos()).await;

    let end = world.now();
    let rules = Rules {
        fifo: is_fair(schedule),
        end: Nanos(end),
        healed_at: injector.healed_at().map(Nanos),
        served_within: Some(schedule.within().duration()),
        ttl: Some(schedule.ttl.duration()),
        grace: key_grace(schedule.system),
        sessions: schedule.cluster().is_some(),
        servers: voters(schedule),
        exact: true,
        longest_retry: Some(LONGEST_RETRY),
    };
    let recorded = record::finish().ok_or(RunError::Unrecorded)?;
    let commands = cluster.commands();
    world.end().await;
    cluster.forget();
    if let Some(mistake) = recorded.mistake {
        return Err(RunError::Vocabulary(mistake));
    }
    Ok(Report {
        seed,
        arm,
        verdicts: audit(&recorded.events, &rules),
        hash: recorded.hash,
        names: Names::new(schedule.keys.iter().map(String::as_str)),
        events: recorded.events,
        simulated: Duration::from_nanos(end),
        commands,
        struck: injector.struck(),
    })
}

/// Whether the lock promises first come, first served. etcd's Lock service does, too, but knows waiters by
/// their leases only.
fn is_fair(schedule: &Schedule) -> bool {
    match schedule.system {
        System::Redis | System::Redlock => false,
        System::Etcd => schedule.etcd.recipe == Recipe::Queue,
        System::ZooKeeper => true,
    }
}

/// The longest backoff of the library (2 s), the longest time that it waits for an answer (1 s), and what the
/// network takes.
const LONGEST_RETRY: Duration = Duration::from_secs(4);

/// The lock servers whose word counts, as the history calls them. A replica has none before it is promoted.
fn voters(schedule: &Schedule) -> Vec<Name> {
    match (schedule.cluster(), schedule.system) {
        // The keys of etcd's own Lock service don't say whose they are.
        (Some(_), System::Etcd) if schedule.etcd.recipe == Recipe::Service => Vec::new(),
        (Some(cluster), _) => vec![Name::from(cluster)],
        (None, System::Redlock) => schedule.servers().iter().map(|name| Name::from(name.as_str())).collect(),
        (None, _) => vec![Name::from("redis-1")],
    }
}

/// How much later than its time to live a key may be dropped. Redis looks every 100 ms, etcd every 500 ms,
/// ZooKeeper at whole ticks of 500 ms; and the keepalives of a session begin its time to live anew while the
/// client lives.
fn key_grace(system: System) -> Duration {
    match system {
        System::Redis | System::Redlock => Duration::from_millis(250),
        System::Etcd | System::ZooKeeper => Duration::from_millis(1500),
    }
}
