//! The laboratory as a subject: it builds a world of its options, in one of two arms.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dlock::AnyBackend;
use resource::audit::{Rules, VerdictKind};
use resource::http::Config;

use super::arm::{ARMS, Arm};
use super::draw;
use super::excuses::excused;
use super::given::{MakeLock, MakeResource, Workplace};
use super::hosts::hosts;
use super::options::{Options, RESOURCE};
use super::system::System;
use super::worker::Worker;
use super::workloads;
use crate::place::{Invalid, Place};
use crate::servers::resource::ResourceHost;
use crate::sim::{self, Draw, Report, RunError, Schedule, ScheduleError, Sim, Subject};
use crate::world::runtime::SimRuntime;

/// The laboratory in one arm.
#[derive(Clone)]
pub struct Lab {
    arm: Arm,
    /// The system that is drawn, if it is always the same.
    drawn: Option<System>,
    lock: Option<MakeLock>,
    resource: Option<MakeResource>,
}

impl Lab {
    /// The laboratory in this arm.
    pub fn new(arm: Arm) -> Self {
        Self { arm, drawn: None, lock: None, resource: None }
    }

    /// The same, but random schedules are of `system` alone.
    #[must_use]
    pub fn drawing(self, system: System) -> Self {
        Self { drawn: Some(system), ..self }
    }

    /// The same with another lock for its workers: the one that `make` makes of a worker's place, in every
    /// life of its process, or the system's own where it makes none.
    #[must_use]
    pub fn with_lock<F>(self, make: F) -> Self
    where
        F: Fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>> + Send + Sync + 'static,
    {
        Self { lock: Some(Arc::new(make)), ..self }
    }

    /// The same with another resource: `make` makes it for each run, of the laboratory's options and of the
    /// resource's, which say whether it is to check tokens.
    #[must_use]
    pub fn with_resource(
        self,
        make: impl Fn(&Options, Config) -> ResourceHost + Send + Sync + 'static,
    ) -> Self {
        Self { resource: Some(Arc::new(make)), ..self }
    }

    /// Both arms, the unfenced one first.
    pub fn arms() -> [Self; 2] {
        [Self::new(Arm::Unfenced), Self::new(Arm::Fenced)]
    }

    fn drawn(&self, seed: u64) -> Schedule<Options> {
        match self.drawn {
            Some(system) => draw::draw_for(system, seed),
            None => draw::draw(seed),
        }
    }

    /// A schedule with a mistake that nobody makes would show nothing.
    fn check_mutant(&self, options: &Options) -> Result<(), Invalid> {
        match &options.mutant {
            Some(mutant) if self.lock.is_none() && self.resource.is_none() => {
                let problem = format!("unknown mutant `{mutant}`: the laboratory itself has none");
                Err(Place::top("mutant").says(problem))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Lab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab").field("arm", &self.arm).finish_non_exhaustive()
    }
}

impl Subject for Lab {
    type Options = Options;

    fn arm(&self) -> &'static str {
        self.arm.name()
    }

    fn arms(&self) -> &'static [&'static str] {
        &ARMS
    }

    fn draw(&self, from: &mut Draw) -> Options {
        self.drawn(from.seed()).options
    }

    fn schedule(&self, from: &mut Draw) -> Result<Schedule<Options>, Invalid> {
        Ok(self.drawn(from.seed()))
    }

    fn build(&self, options: &Options, sim: &mut Sim) -> Result<(), Invalid> {
        self.check_mutant(options)?;
        for (number, worker) in options.workers.iter().enumerate() {
            let options = options.clone();
            let given = self.lock.clone();
            sim.process(&worker.name, move |process| {
                workloads::main(process, options.clone(), number, given.clone())
            });
        }
        for (name, host) in hosts(options, self.arm.fencing(), self.resource.as_ref()) {
            if name == RESOURCE {
                sim.shared_resource(&name, host);
            } else {
                sim.shared_host(&name, host);
            }
        }
        let system = options.system.get();
        system.prepare(sim);
        if let Some(cluster) = options.cluster() {
            sim.cluster(cluster);
        }
        for key in &options.keys {
            sim.key(key);
        }
        let longest_ttl =
            options.workers.iter().map(|worker| options.ttl_of(worker)).max().unwrap_or_default();
        let grace = system.key_grace();
        sim.scale(options.ttl.duration())
            .linger(longest_ttl.duration() + grace + Duration::from_secs(1))
            .rules(Rules {
                fifo: system.is_fair(options),
                served_within: Some(options.within().duration()),
                ttl: Some(options.ttl.duration()),
                grace,
                sessions: options.cluster().is_some(),
                servers: system.voters(options),
                exact: true,
                longest_retry: Some(LONGEST_RETRY),
                ..Rules::default()
            });
        Ok(())
    }

    fn check(&self, schedule: &Schedule<Options>, _: &Sim) -> Result<(), Invalid> {
        schedule.validate()
    }

    fn excused(&self, schedule: &Schedule<Options>) -> BTreeSet<VerdictKind> {
        excused(schedule, self.arm)
    }

    /// Workers that differ in nothing but their names. Those of a cluster do: each begins with a member of
    /// its own.
    fn exchangeable(&self, options: &Options) -> Vec<Vec<String>> {
        if options.cluster().is_some() {
            return Vec::new();
        }
        let mut groups: Vec<(Worker, Vec<String>)> = Vec::new();
        for worker in &options.workers {
            let nameless = Worker { name: String::new(), ..worker.clone() };
            match groups.iter_mut().find(|(like, _)| *like == nameless) {
                Some((_, names)) => names.push(worker.name.clone()),
                None => groups.push((nameless, vec![worker.name.clone()])),
            }
        }
        groups.into_iter().map(|(_, names)| names).filter(|names| names.len() > 1).collect()
    }
}

impl Schedule<Options> {
    /// The schedule of the laboratory with this TOML text. `file` is what errors call it.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Invalid`] with the line of what is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScheduleError> {
        sim::parse(&Lab::new(Arm::Fenced), file, text)
    }

    /// The schedule of the laboratory in the file at `path`.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Read`] if the file can't be read, else as [`Schedule::parse`].
    pub fn load(path: &Path) -> Result<Self, ScheduleError> {
        sim::load(&Lab::new(Arm::Fenced), path)
    }
}

/// Runs one arm of the schedule with all randomness keyed by `seed`.
///
/// # Errors
///
/// [`RunError`] if the schedule is not valid, or the run itself fails. A verdict is not an error.
pub fn run(schedule: &Schedule<Options>, arm: Arm, seed: u64) -> Result<Report, RunError> {
    sim::build(&Lab::new(arm), schedule)?.with_seed(seed).run()
}

/// The longest backoff of the library (2 s), the longest time that it waits for an answer (1 s), and what
/// the network takes.
const LONGEST_RETRY: Duration = Duration::from_secs(4);
